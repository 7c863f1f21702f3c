// The TypeScript clients: the package of today in its three modes, and the one before, which knows the handshake only.
// Each lists the tools, calls one, sees progress, cancels a call, goes on, and closes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as FormerClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as FormerTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

import * as launching from "./launching.mjs";

const HANDSHAKE = "2025-06-18";
const ENVELOPE = "2026-07-28";

function current(mode) {
  return {
    make: () => new Client(launching.ME, { versionNegotiation: { mode } }),
    Transport: StdioClientTransport,
    call: (client, params, options) => client.callTool(params, options),
    revision: (client) => client.getNegotiatedProtocolVersion(),
  };
}

const former = {
  make: () => new FormerClient(launching.ME),
  Transport: FormerTransport,
  call: (client, params, options) => client.callTool(params, undefined, options),
  revision: () => HANDSHAKE, // It does not tell; connect() refuses a revision that it does not know.
};

const trials = [
  { title: "@modelcontextprotocol/client, legacy", kind: current("legacy"), revision: HANDSHAKE },
  { title: "@modelcontextprotocol/client, auto", kind: current("auto"), revision: ENVELOPE },
  { title: "@modelcontextprotocol/client, modern", kind: current({ pin: ENVELOPE }), revision: ENVELOPE },
  { title: "@modelcontextprotocol/sdk", kind: former, revision: HANDSHAKE },
];

for (const { title, kind, revision } of trials) {
  test(`${title}: lists, calls, sees progress, cancels, goes on`, { timeout: 30_000 }, async (trial) => {
    const folder = launching.workplace(trial);
    const client = kind.make();
    await client.connect(new kind.Transport(launching.recorded(folder)));
    trial.after(() => client.close());
    assert.equal(kind.revision(client), revision);
    assert.equal(client.getServerVersion().name, "openai-responses-mcp");
    assert.match(client.getInstructions(), /answer_quick/);

    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((tool) => tool.name), launching.TOOLS);

    const heard = [];
    const answered = await kind.call(client, launching.SLOW, { onprogress: (progress) => heard.push(progress) });
    assert.ok(answered.structuredContent.answer);
    assert.deepEqual(heard[0], { progress: 1, message: "asking the model" });

    await cancelInFlight(kind, client);
    const next = await kind.call(client, launching.SHORT);
    assert.equal(next.structuredContent.answer, answered.structuredContent.answer);

    await client.close();
    await launching.assertEndedWith(folder, 0, 143); // Probes in a process of their own are ended with SIGTERM.
    assertCancelled(folder);
    launching.assertWireTypes(folder);
  });

  test(`${title}: the server ends with it`, { timeout: 30_000 }, async (trial) => {
    const folder = launching.workplace(trial);
    const client = kind.make();
    await client.connect(new kind.Transport(launching.direct(folder)));
    trial.after(() => client.close());
    await client.listTools();
    await client.close();
    await launching.assertNoneLingers(folder);
  });
}

/** As soon as the first progress shows that the call is under way. */
async function cancelInFlight(kind, client) {
  const controller = new AbortController();
  const call = kind.call(client, launching.LONG, { signal: controller.signal, onprogress: () => controller.abort("enough") });
  await assert.rejects(call);
}

/** The server was told, and did not answer that call. */
function assertCancelled(folder) {
  const recording = launching.recordings(folder).find((records) => launching.messages(records, "client").some((message) => message.method === "tools/call"));
  const told = launching.messages(recording, "client").find((message) => message.method === "notifications/cancelled");
  assert.ok(told, "no notifications/cancelled was sent");
  assert.ok(!launching.messages(recording, "server").some((message) => message.id === told.params.requestId));
}
