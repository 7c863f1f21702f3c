// How the trials start the server, what they wait for, and what they look for when it is over. Every wait is bounded.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const here = import.meta.dirname;
const python = process.env.SERVER_PYTHON ?? path.join(here, "..", "..", ".venv", "bin", "python");
const plain = ["-m", "openai_responses_mcp", "--stdio", "--rehearse"];
// BEHIND_GUARD=1: the same trials with the guard in between, which lets every call run.
const guard = ["-m", "openai_responses_mcp", "agents", "guard", "--policy", path.join(here, "allow_all.yaml"), "--", python];
const server = process.env.BEHIND_GUARD ? [...guard, ...plain] : plain;

// The package has no door but the command; this is what `npx @modelcontextprotocol/inspector` runs.
const INSPECTOR = path.join(here, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js");

const LONGEST_EXIT_MS = 5_000;
export const ME = { name: "trial", version: "1.0.0" };
export const TOOLS = ["answer", "answer_detailed", "answer_quick"];
export const SHORT = { name: "answer", arguments: { query: "What does HTTP 404 mean?" } };
// Progress that arrives together with the result is not handed on by the TypeScript clients; this takes long enough.
export const SLOW = { name: "answer", arguments: { query: "What does HTTP 404 mean? [rehearse: delay=0.5]" } };
export const LONG = { name: "answer", arguments: { query: "What does HTTP 404 mean? [rehearse: delay=30]" } };

/** A folder of its own for one trial, which is also the home of its server, so that nobody's configuration is read. */
export function workplace(trial) {
  const folder = mkdtempSync(path.join(tmpdir(), "clients-"));
  trial.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function environment(home) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(OPENAI_|MODEL_|ANSWER_|SEARCH_|MAX_CITATIONS$|DEBUG$|MCP_)/.test(name));
  return { ...Object.fromEntries(kept), HOME: home };
}

/** The server as users start it; a shell that becomes the server notes the number of the process first. */
export function direct(home) {
  const noting = 'echo $$ >> "$0"; exec "$@"';
  return { command: "sh", args: ["-c", noting, path.join(home, "pids"), python, ...server], env: environment(home) };
}

/** The server behind recorder.py, which writes down what goes over the wire. */
export function recorded(home) {
  return { command: python, args: [path.join(here, "recorder.py"), home, python, ...server], env: environment(home) };
}

/** The server over HTTP on a free port, or the guard in front of it. */
export function overHttp(home) {
  const module = ["-m", "openai_responses_mcp"];
  const rules = ["--policy", path.join(here, "allow_all.yaml"), "--store", `sqlite:///${path.join(home, "guard.db")}`];
  const guarding = [...module, "guard", "--http", "0", ...rules, "--", python, ...plain];
  return { command: python, args: process.env.BEHIND_GUARD ? guarding : [...module, "--http", "0", "--rehearse"], env: environment(home) };
}

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  throw new Error(`The Inspector needs Node 22.19 or newer, this is ${process.version}. On Linux x64 npm installs one by itself.`);
}

/** What recorder.py has written so far: one list of records for each server that was started. */
export function recordings(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  return files.map((name) => readFileSync(path.join(folder, name), "utf8").split("\n").filter(Boolean).map(JSON.parse));
}

export function messages(recording, sender) {
  return recording.filter((record) => record.from === sender).map((record) => JSON.parse(record.line));
}

/** Every server that was started for this folder is gone in time. */
export async function assertNoneLingers(folder) {
  const pids = readFileSync(path.join(folder, "pids"), "utf8").trim().split("\n").map(Number);
  assert.ok(pids.every(Number.isInteger), "no server was started");
  await within(LONGEST_EXIT_MS, "every server has ended", () => !pids.some(isRunning));
}

/** Every recorded server has ended in time and with one of these codes. */
export async function assertEndedWith(folder, ...expected) {
  const codes = await within(LONGEST_EXIT_MS, "every server has ended", () => {
    const found = recordings(folder).map((records) => records.at(-1).exit);
    return found.length > 0 && found.every((code) => code !== undefined) ? found : undefined;
  });
  for (const code of codes) assert.ok(expected.includes(code), `a server ended with ${code}`);
}

/** Every message fits the wire types of its revision: wire_types.py knows them from the package mcp-types. */
export function assertWireTypes(folder) {
  execFileSync(python, [path.join(here, "wire_types.py"), folder], { stdio: ["ignore", "inherit", "inherit"] });
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    assert.equal(error.code, "ESRCH");
    return false;
  }
  return !isZombie(pid);
}

/** An ended process whose parent has not asked for its exit code yet; only Linux says so. */
function isZombie(pid) {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** The Inspector on the command line, gone with the trial. */
export function inspect(trial, args, env) {
  const run = spawn(process.execPath, [INSPECTOR, "--cli", ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  trial.after(() => run.kill());
  return run;
}

/** What the Inspector prints as JSON, and on stderr, once it has ended well. */
export async function resultOf(run) {
  const [said, complained, [code]] = await Promise.all([text(run.stdout), text(run.stderr), once(run, "close")]);
  assert.equal(code, 0, complained);
  return { ...JSON.parse(said), complained };
}

/** What `look` gives, as soon as it is something. */
export async function within(milliseconds, what, look) {
  for (const deadline = Date.now() + milliseconds; Date.now() < deadline; await sleep(20)) {
    const found = look();
    if (found) return found;
  }
  assert.fail(`not within ${milliseconds} ms: ${what}`);
}
