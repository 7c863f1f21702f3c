// The Inspector on the command line, in each era: one run, one server. It cannot cancel a call, but it can be
// interrupted in the middle of one; and it asks for progress only when it is given a token.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import * as launching from "./launching.mjs";

function inspect(trial, era, options, server, variables = {}) {
  const handedOn = Object.entries(variables).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
  const args = [...handedOn, ...options, "--protocol-era", era, "--format", "json", server.command, ...server.args];
  return launching.inspect(trial, args, server.env);
}

function asking({ name, arguments: { query } }) {
  return ["--method", "tools/call", "--tool-name", name, "--tool-arg", `query=${query}`];
}

for (const era of ["legacy", "auto", "modern"]) {
  test(`Inspector, ${era}: --strict finds nothing in the tools`, { timeout: 30_000 }, async (trial) => {
    const folder = launching.workplace(trial);
    const run = inspect(trial, era, ["--method", "tools/list", "--strict"], launching.direct(folder));
    const { result, complained } = await launching.resultOf(run);
    assert.deepEqual(result.tools.map((tool) => tool.name), launching.TOOLS);
    assert.equal(complained, "");
    await launching.assertNoneLingers(folder);
  });

  test(`Inspector, ${era}: calls a tool, with progress on the wire`, { timeout: 30_000 }, async (trial) => {
    const folder = launching.workplace(trial);
    const options = [...asking(launching.SHORT), "--tool-metadata", "progressToken=trial"];
    const { result } = await launching.resultOf(inspect(trial, era, options, launching.recorded(folder)));
    assert.ok(result.structuredContent.answer);
    await launching.assertEndedWith(folder, 0);
    const sent = launching.recordings(folder).flatMap((records) => launching.messages(records, "server"));
    assert.ok(sent.some((message) => message.method === "notifications/progress"));
    launching.assertWireTypes(folder);
  });

  test(`Inspector, ${era}: interrupted in a call, it leaves no server behind`, { timeout: 30_000 }, async (trial) => {
    const folder = launching.workplace(trial);
    const log = path.join(folder, "debug.log");
    const run = inspect(trial, era, asking(launching.LONG), launching.direct(folder), { DEBUG: log });
    await launching.within(10_000, "the call is under way", () => existsSync(log) && readFileSync(log, "utf8").includes("tools/call name="));
    run.kill("SIGINT");
    await once(run, "close");
    await launching.assertNoneLingers(folder);
  });
}
