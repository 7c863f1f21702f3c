// The TypeScript clients and the Inspector straight over HTTP, with the server and with the guard in front of it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as FormerClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as FormerTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import * as launching from "./launching.mjs";


/** A server over HTTP that ends with the trial; where it serves. */
async function served(trial, folder) {
  const { command, args, env } = launching.overHttp(folder);
  const server = spawn(command, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  trial.after(async () => {
    server.kill();
    await once(server, "close");
  });
  for await (const line of createInterface({ input: server.stderr })) {
    const found = /serving on (\S+)/.exec(line);
    if (found) return found[1];
  }
  return assert.fail("the server did not start");
}

const current = (mode) => ({
  make: () => new Client(launching.ME, { versionNegotiation: { mode } }),
  Transport: StreamableHTTPClientTransport,
  call: (client, params, options) => client.callTool(params, options),
});
const former = {
  make: () => new FormerClient(launching.ME),
  Transport: FormerTransport,
  call: (client, params, options) => client.callTool(params, undefined, options),
};

const trials = { legacy: current("legacy"), auto: current("auto"), modern: current({ pin: "2026-07-28" }), former };

for (const [title, kind] of Object.entries(trials)) {
  test(`TypeScript over HTTP, ${title}: lists, calls, sees progress, cancels, goes on`, { timeout: 60_000 }, async (trial) => {
    const url = await served(trial, launching.workplace(trial));
    const client = kind.make();
    await client.connect(new kind.Transport(new URL(url)));
    trial.after(() => client.close());
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((tool) => tool.name), launching.TOOLS);

    const heard = [];
    const answered = await kind.call(client, launching.SLOW, { onprogress: (progress) => heard.push(progress) });
    assert.ok(answered.structuredContent.answer);
    assert.equal(heard[0].message, "asking the model");

    const aborting = new AbortController();
    const cancelled = kind.call(client, launching.LONG, { signal: aborting.signal });
    aborting.abort();
    await assert.rejects(cancelled);
    const next = await kind.call(client, launching.SHORT);
    assert.ok(next.structuredContent.answer);
  });
}

for (const era of ["legacy", "auto", "modern"]) {
  test(`Inspector over HTTP, ${era}: calls a tool`, { timeout: 60_000 }, async (trial) => {
    const url = await served(trial, launching.workplace(trial));
    const asked = ["--method", "tools/call", "--tool-name", "answer", "--tool-arg", "query=What does HTTP 404 mean?"];
    const args = [...asked, "--protocol-era", era, "--format", "json", "--transport", "http", url];
    const { result } = await launching.resultOf(launching.inspect(trial, args, process.env));
    assert.ok(result.structuredContent.answer);
  });
}

test("mcp-remote: a client that only knows stdio calls a tool", { timeout: 60_000 }, async (trial) => {
  const folder = launching.workplace(trial);
  const url = await served(trial, folder);
  const remote = fileURLToPath(new URL("node_modules/mcp-remote/dist/proxy.js", import.meta.url));
  const client = new FormerClient(launching.ME);
  const args = [remote, url, "--allow-http", "--transport", "http-only"];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env: { PATH: process.env.PATH, HOME: folder }, stderr: "ignore" }));
  trial.after(() => client.close());
  const answered = await client.callTool(launching.SHORT);
  assert.ok(answered.structuredContent.answer);
});
