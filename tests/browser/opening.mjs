// How the trials start the desk, a worker that asks, and a browser that decides. Every wait is bounded.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const root = path.join(import.meta.dirname, "..", "..");
const python = process.env.SERVER_PYTHON ?? path.join(root, ".venv", "bin", "python");

export const LONGEST_WAIT_MS = 30_000;

const [major] = process.versions.node.split(".").map(Number);
if (major < 22) {
  throw new Error(`The browser needs Node 22.17 or newer, this is ${process.version}. On Linux x64 npm installs one by itself.`);
}

/** A process whose stdout is read line by line; it is ended with the trial. */
function started(trial, args, more = {}) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(AGENTS_|OPENAI_)/.test(name));
  const environment = { ...Object.fromEntries(kept), ...more };
  const made = spawn(python, args, { cwd: root, env: environment, stdio: ["pipe", "pipe", "inherit"] });
  trial.after(() => made.kill("SIGKILL"));
  const lines = createInterface({ input: made.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const line = await within(lines.next(), `a line of ${args[1] ?? args[0]}`);
    assert.ok(!line.done, "the process ended");
    return line.value;
  };
  return { process: made, next };
}

export const TOKENS = { ann: "token-of-ann-1234567890", bob: "token-of-bob-1234567890" };

/** A store of its own, a worker that asks, and the desk as users start it: for one person, or for a team with `TOKENS`. */
export async function opened(trial, { isForTeam = false } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), "desk-"));
  trial.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, "agents.db");
  const asking = started(trial, ["-m", "tests.browser.worker", file]);
  await asking.next();
  const worker = async (verb, given) => {
    asking.process.stdin.write(`${JSON.stringify({ [verb]: given })}\n`);
    const done = JSON.parse(await asking.next());
    assert.ok(!done.failed, done.failed);
    return done;
  };
  const command = ["-m", "openai_responses_mcp", "approvals", "serve", "--json", "--store", `sqlite:///${file}`];
  if (isForTeam) {
    writeFileSync(path.join(folder, "config.yaml"), "http: {tokens_env: TEAM_TOKENS}\n");
    command.push("--http", "127.0.0.1:0", "--config", path.join(folder, "config.yaml"));
  }
  const pairs = Object.entries(TOKENS).map((pair) => pair.join(":"));
  const serving = started(trial, command, { TEAM_TOKENS: pairs.join("\n") });
  let text = "";
  while (!text.includes("}")) text += await serving.next();
  return { link: JSON.parse(text).link, worker, desk: serving.process };
}

let browser;

export async function launch() {
  browser = await puppeteer.launch({
    executablePath: await chromium.executablePath(),
    // Not those that come with the package: they switch off what is to be tried here.
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"],
    headless: "shell",
  });
  return browser;
}

/** A window with cookies of its own, which notes whatever the trials have to know of it. */
export async function aWindow(trial, { width = 1200, height = 900, scheme = "light", language = "en" } = {}) {
  const context = await browser.createBrowserContext();
  trial.after(() => context.close().catch(() => undefined));
  const page = await context.newPage();
  page.setDefaultTimeout(LONGEST_WAIT_MS);
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.evaluateOnNewDocument((wanted) => {
    Object.defineProperty(navigator, "language", { get: () => wanted });
    window.violations = [];
    addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  }, language);
  const noted = { requests: [], problems: [] };
  page.on("request", (request) => noted.requests.push(request.url()));
  page.on("pageerror", (error) => noted.problems.push(String(error)));
  page.on("dialog", (dialog) => { noted.problems.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  page.on("console", (message) => message.type() === "error" && noted.problems.push(message.text()));
  return { page, noted };
}

/** The desk in a window, let in and live. */
export async function seated(trial, options) {
  const desk = await opened(trial);
  const { page, noted } = await aWindow(trial, options);
  await page.goto(desk.link);
  await page.waitForSelector(".connection.live");
  return { ...desk, page, noted };
}

/** Nothing was loaded from elsewhere, nothing broke the policy of the page, nothing failed in its scripts. */
export async function assertClean({ page, noted, link }) {
  const { origin } = new URL(link);
  assert.deepEqual(noted.requests.filter((url) => new URL(url).origin !== origin), []);
  assert.deepEqual(noted.problems, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
}

export const card = (approvalId) => `article:has([data-id="${approvalId}"])`;

export async function textOf(page, selector) {
  return (await page.waitForSelector(selector)).evaluate((found) => found.textContent);
}

/** Until the text of a place fits; the page is asked, not a clock. */
export async function says(page, selector, words) {
  await page.waitForFunction((where, what) => document.querySelector(where)?.textContent.includes(what), {}, selector, words);
}

export async function within(work, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not in time: ${what}`)), LONGEST_WAIT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
