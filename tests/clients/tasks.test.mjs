// Clients that know tasks: the Inspector on the command line, and the session of @modelcontextprotocol/ext-tasks over the
// TypeScript client. Every message about a task is held against the schemas that the extension publishes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import * as schemas from "@modelcontextprotocol/ext-tasks/core/v2";

import * as launching from "./launching.mjs";

const ENVELOPE = "2026-07-28";
const RESEARCH = { name: "answer_detailed", arguments: { query: "What does HTTP 404 mean? [rehearse: delay=2]" } };
const ENDLESS = { query: "What does HTTP 404 mean? [rehearse: delay=60]" };

const RESULTS = {
  "tools/call": schemas.CreateTaskResultV2Schema,
  "tasks/get": schemas.GetTaskResultV2Schema,
  "tasks/cancel": schemas.CancelTaskResultV2Schema,
};

/** The methods whose results were about tasks, each held against the published schema. */
function checkedMethods(folder) {
  const sent = launching.recordings(folder).flatMap((records) => launching.messages(records, "server"));
  const discovered = sent.find((message) => message.result?.supportedVersions);
  assert.ok(schemas.hasTaskServerCapabilityV2(discovered.result.capabilities));
  return launching.recordings(folder).flatMap((records) => {
    const asked = new Map(launching.messages(records, "client").map((message) => [message.id, message.method]));
    const results = launching.messages(records, "server").filter((message) => message.result?.taskId || asked.get(message.id) === "tasks/cancel");
    for (const { id, result } of results) {
      RESULTS[asked.get(id)].parse(result);
      if (result.result) schemas.CallToolResultV2Schema.parse(result.result);
    }
    return results.map(({ id }) => asked.get(id));
  });
}

for (const era of ["auto", "modern"]) {
  test(`Inspector, ${era}: waits for a research as a task`, { timeout: 60_000 }, async (trial) => {
    const folder = launching.workplace(trial);
    const server = launching.recorded(folder);
    const asking = ["--method", "tools/call", "--tool-name", RESEARCH.name, "--tool-arg", `query=${RESEARCH.arguments.query}`];
    const args = [...asking, "--protocol-era", era, "--format", "json", server.command, ...server.args];
    const { result } = await launching.resultOf(launching.inspect(trial, args, server.env));
    assert.match(result.structuredContent.answer, /rehearsal/);
    await launching.assertEndedWith(folder, 0);
    const methods = checkedMethods(folder);
    assert.deepEqual([methods[0], methods.at(-1)], ["tools/call", "tasks/get"]);
    launching.assertWireTypes(folder);
  });
}

/** The requests of the extension go past the client, which does not know it, over the client's own connection. */
function dispatching(transport) {
  const waiting = new Map();
  const hear = transport.onmessage;
  transport.onmessage = (message, ...more) => {
    const answer = waiting.get(message.id);
    if (answer === undefined) return hear(message, ...more);
    waiting.delete(message.id);
    answer(message.error ? { kind: "error", error: message.error } : { kind: "result", result: message.result });
  };
  return async (request) => {
    const id = `ext-${crypto.randomUUID()}`;
    const answered = new Promise((answer) => waiting.set(id, answer));
    await transport.send({ jsonrpc: "2.0", ...request, id });
    return answered;
  };
}

async function sessionIn(folder, trial) {
  const client = new Client(launching.ME, { versionNegotiation: { mode: { pin: ENVELOPE } } });
  const transport = new StdioClientTransport(launching.recorded(folder));
  await client.connect(transport);
  trial.after(() => client.close());
  const session = createTaskSessionFromClient(client, {
    endpointId: "trial",
    rawDispatch: dispatching(transport),
    v2RequestFraming: { protocolVersion: ENVELOPE, clientInfo: launching.ME, clientCapabilities: {} },
  });
  return { client, session };
}

test("ext-tasks: gets the answer of a research, and cancels another", { timeout: 60_000 }, async (trial) => {
  const folder = launching.workplace(trial);
  const { client, session } = await sessionIn(folder, trial);
  const research = await session.callTool(RESEARCH.name, RESEARCH.arguments);
  const { outcome } = await research.settle();
  assert.match(resultFromTaskOutcome(outcome).structuredContent.answer, /rehearsal/);

  const endless = await session.callTool(RESEARCH.name, ENDLESS);
  await endless.cancel();
  await assert.rejects(async () => resultFromTaskOutcome((await endless.settle()).outcome), /cancel/i);

  await session.close();
  await client.close();
  await launching.assertEndedWith(folder, 0, 143); // Probes in a process of their own are ended with SIGTERM.
  const methods = checkedMethods(folder);
  assert.equal(methods.filter((method) => method === "tools/call").length, 2);
  assert.ok(methods.includes("tasks/cancel"));
  launching.assertWireTypes(folder);
});
