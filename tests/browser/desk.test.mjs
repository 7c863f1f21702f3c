// The desk in a real browser, as a person uses it: the real command on a real store with requests that really wait.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { assertClean, aWindow, card, launch, opened, says, seated, textOf, TOKENS, within } from "./opening.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const HOSTILE = [
  '<img src=x onerror="alert(1)">',
  "</script><script>alert(2)</script>",
  "javascript:alert(3)",
  "invoice\u202efdp.exe",
  "a\u200bb\u0000c\u001b[31m",
  "{{constructor.constructor('alert(4)')()}}",
].join(" ");

async function decided(page, approvalId) {
  await page.waitForSelector(`${card(approvalId)}.decided`);
}

async function decide(page, approvalId, decision = "approve") {
  await (await page.waitForSelector(`${card(approvalId)} button.${decision}`)).click();
  await decided(page, approvalId);
}

/** Requests of several tools, once they are on the page. */
async function askedFor(page, worker, names) {
  const ids = [];
  for (const name of names) ids.push((await worker("ask", { name })).approval_id);
  for (const id of ids) await page.waitForSelector(`${card(id)} button.approve`);
  return ids;
}

test("the link opens the desk once, and leaves no secret in the address", async (trial) => {
  const desk = await opened(trial);
  const first = await aWindow(trial);
  // The cookie is strict, and the browser comes from elsewhere.
  await first.page.goto(`data:text/html,<a href="${desk.link}">the desk</a>`);
  await first.page.click("a");
  await first.page.waitForSelector(".connection.live");
  assert.ok(!first.page.url().includes("secret"));
  first.noted.requests.shift();
  const [cookie] = await first.page.browserContext().cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, "Strict"]);
  assert.equal(new URL(first.page.url()).pathname, cookie.path);
  const second = await aWindow(trial);
  assert.equal((await second.page.goto(desk.link)).status(), 403);
  assert.match(await textOf(second.page, "body"), /has been used/);
  assert.equal((await second.page.goto(first.page.url())).status(), 403);
  await first.page.reload();
  await first.page.waitForSelector(".connection.live");
  await assertClean({ ...first, link: desk.link });
});

test("a page elsewhere can neither read the desk, nor change it, nor frame it", async (trial) => {
  const { page, worker } = await seated(trial);
  const { approval_id } = await worker("ask", {});
  // Another port of this machine is the same site for cookies, and the path of the desk is given away here.
  const elsewhere = await served(trial, `<!doctype html><iframe src="${page.url()}"></iframe>`);
  const other = await page.browserContext().newPage();
  const refused = [];
  other.on("response", (response) => response.url().startsWith(page.url()) && refused.push(response.status()));
  await other.goto(elsewhere);
  assert.deepEqual(refused, [403]);
  const body = JSON.stringify({ decisions: [{ approval_id, decision: "approve" }] });
  const outcomes = await other.evaluate(steal, page.url(), body);
  assert.deepEqual(outcomes, ["failed", "failed", "failed"]);
  assert.deepEqual(refused.filter((status) => status !== 403), []);
  assert.equal((await worker("get", approval_id)).status, "pending");
});

/** What a page can try; runs in the page. */
async function steal(target, body) {
  const tried = (path, options) =>
    fetch(`${target}${path}`, { credentials: "include", ...options }).then((response) => response.type, () => "failed");
  return [
    await tried("waiting"),
    await tried("decisions", { method: "POST", body, headers: { "Content-Type": "application/json", "X-Page-Token": "" } }),
    await tried("decisions", { method: "POST", body, mode: "no-cors" }),
  ];
}

async function served(trial, html) {
  const server = createServer((_, response) => response.setHeader("Content-Type", "text/html").end(html));
  trial.after(() => server.close());
  await within(new Promise((resolve) => server.listen(0, "127.0.0.1", resolve)), "another server");
  return `http://127.0.0.1:${server.address().port}/`;
}

test("requests appear as they come in, with who asks, what will run and why", async (trial) => {
  const desk = await seated(trial);
  const { page, worker } = desk;
  await says(page, "#nothing", "Nothing waits");
  const { run_id, approval_ids } = await worker("run", {
    agent: "Release clerk",
    calls: [{ tool: "write_file", arguments: { path: "a.md", text: "hello" } }],
  });
  await says(page, card(approval_ids[0]), "Release clerk");
  const shown = await textOf(page, card(approval_ids[0]));
  for (const words of [run_id, "write_file", "no rule covers this tool, so you are asked", '"path": "a.md"', "Write a text into a file."]) {
    assert.ok(shown.includes(words), words);
  }
  await says(page, "#count", "1");
  await says(page, "#announcement", "write_file");
  assert.match(await page.title(), /^\(1\)/);
  await assertClean(desk);
});

test("an approved run goes on with the token that the page shows", async (trial) => {
  const desk = await seated(trial);
  const { page, worker } = desk;
  const calls = [{ tool: "pay", arguments: { amount: 5, to: "Ann" } }];
  const { run_id, approval_ids } = await worker("run", { agent: "Clerk", calls });
  const [id] = approval_ids;
  await page.waitForSelector(`${card(id)} button.approve`);
  await page.type(`${card(id)} .deciding input`, "fine <b>by</b> me");
  await decide(page, id);
  const token = await textOf(page, `${card(id)} .token`);
  assert.equal((await worker("get", id)).comment, "fine <b>by</b> me");
  assert.deepEqual((await worker("resume", { run_id, token })).results, ["paid 5 to Ann"]);
  await page.click("nav a[href='#log']");
  await page.waitForSelector(".verification.intact");
  await page.click(".call summary");
  await says(page, ".call .records", "fine <b>by</b> me");
  await assertClean(desk);
});

test("a call behind the guard runs when it is approved, with nothing to carry over", async (trial) => {
  const desk = await seated(trial);
  const { page, worker } = desk;
  const { approval_id } = await worker("guard", { text: "milk" });
  await page.waitForSelector(`${card(approval_id)} button.approve`);
  assert.match(await textOf(page, card(approval_id)), /guard of small/);
  await decide(page, approval_id);
  assert.equal(await page.$(`${card(approval_id)} .token`), null);
  assert.deepEqual(JSON.parse((await worker("guarded", {})).text), { got: { text: "milk" } });
  // It leaves the list by itself, but not while the pointer is in it.
  await page.mouse.move(0, 0);
  await page.waitForFunction((where) => !document.querySelector(where), {}, card(approval_id));
  await page.click("nav a[href='#log']");
  await says(page, ".call", "allowed by a person");
  await assertClean(desk);
});

test("a call runs with the arguments that a person put in the place of its own", async (trial) => {
  const { page, worker } = await seated(trial);
  const calls = [{ tool: "pay", arguments: { amount: 500, to: "Ann" } }];
  const { run_id, approval_ids } = await worker("run", { agent: "Clerk", calls });
  const place = card(approval_ids[0]);
  await page.waitForSelector(`${place} .more summary`);
  await page.click(`${place} .more summary`);
  await page.click(`${place} .more input[type=checkbox]`);
  await says(page, `${place} button.approve`, "Approve with changes");
  const write = (text) => page.$eval(`${place} textarea`, (area, value) => (area.value = value), text);
  for (const [wrong, why] of [["{", "not JSON"], ['{"amount": "x", "to": "Ann"}', "do not fit the tool"]]) {
    await write(wrong);
    await page.click(`${place} button.approve`);
    await says(page, `${place} .problem`, why);
  }
  await write('{"amount": 5, "to": "Ann"}');
  await page.click(`${place} button.approve`);
  await decided(page, approval_ids[0]);
  const token = await textOf(page, `${place} .token`);
  assert.deepEqual((await worker("resume", { run_id, token })).results, ["paid 5 to Ann"]);
});

test("several are decided at once", async (trial) => {
  const { page, worker } = await seated(trial);
  const ids = await askedFor(page, worker, ["a", "b", "c"]);
  for (const id of ids.slice(0, 2)) await page.click(`${card(id)} input[type=checkbox]`);
  await says(page, "#chosen", "2 selected");
  await page.type(`${card(ids[1])} .deciding input`, "this one");
  await page.type("#several-comment", "both");
  await page.click("#approve-chosen");
  for (const id of ids.slice(0, 2)) await decided(page, id);
  const found = [];
  for (const id of ids) found.push(await worker("get", id));
  assert.deepEqual(found.map((one) => one.status), ["approved", "approved", "pending"]);
  assert.deepEqual(found.map((one) => one.comment), ["both", "this one", null]);
  await says(page, "#count", "1");
});

test("alike requests are one card, and a decision covers exactly those that it shows", async (trial) => {
  const { page, worker, link } = await waitingFirst(trial, async (ask) => {
    for (const path of ["a", "b"]) await ask({ arguments: { path } });
  });
  await page.goto(link);
  await page.waitForSelector("article button.approve");
  assert.equal((await page.$$("article")).length, 1);
  await says(page, "article button.approve", "Approve all 2");
  const late = (await worker("ask", { arguments: { path: "late" } })).approval_id;
  await says(page, "article .joining", "1 more like these");
  assert.ok(!(await textOf(page, "article")).includes("late"));
  await page.click("article button.approve");
  await page.waitForSelector("article.decided");
  assert.equal((await worker("get", late)).status, "pending");
  await page.waitForSelector(`${card(late)} button.approve`);
  const later = (await worker("ask", { arguments: { path: "later" } })).approval_id;
  await page.waitForSelector(".joining:enabled");
  await page.click(".joining:enabled");
  await decide(page, later, "deny");
  for (const id of [late, later]) assert.equal((await worker("get", id)).status, "denied");
});

test("keys move and decide, and count only after half a second", async (trial) => {
  const { page, worker } = await seated(trial);
  const ids = await askedFor(page, worker, ["a", "b", "c"]);
  const isCurrent = (id) => page.waitForSelector(`${card(id)}.current`);
  await page.keyboard.press("j");
  await isCurrent(ids[0]);
  await page.keyboard.press("a");
  assert.equal((await worker("get", ids[0])).status, "pending");
  await settled(page);
  await page.keyboard.press("a");
  await decided(page, ids[0]);
  await isCurrent(ids[1]);
  await page.keyboard.press("j");
  await isCurrent(ids[2]);
  await settled(page);
  await page.keyboard.press("d");
  await decided(page, ids[2]);
  assert.deepEqual([(await worker("get", ids[1])).status, (await worker("get", ids[2])).status], ["pending", "denied"]);
});

test("keys go on where they were, after the filter, a comment, a checkbox or the help", async (trial) => {
  const { page, worker } = await seated(trial);
  const ids = await askedFor(page, worker, ["alpha", "beta", "gamma", "delta"]);
  const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
  const isCurrent = (at) => page.waitForSelector(`${card(ids[at])}.current`);
  await press("j", "j");
  await isCurrent(1);
  await press("/");
  await page.keyboard.type("no such tool");
  await says(page, "#nothing:not([hidden])", "No request matches");
  await press("Escape", "j");
  await isCurrent(2);
  await press("/");
  await page.keyboard.type("delta");
  await press("Enter");
  await isCurrent(3);
  await page.waitForSelector(`${card(ids[1])}[hidden]`);
  await press("/", "Escape", "k");
  await isCurrent(2);
  await page.click(`${card(ids[2])} .deciding input`);
  await press("j", "Escape", "k");
  await isCurrent(1);
  assert.equal(await page.$eval(`${card(ids[2])} .deciding input`, (comment) => comment.value), "j");
  await page.click(`${card(ids[0])} input[type=checkbox]`);
  await press("j");
  await isCurrent(1);
  await page.click("nav a[href='#standing']");
  await page.waitForSelector("#standing:not([hidden])");
  await press("?");
  await page.waitForSelector("#help[open]");
  await press("Escape");
  await page.click("nav a[href='#waiting']");
  await page.waitForSelector("#waiting:not([hidden])");
  await press("j");
  await isCurrent(2);
});

test("keys count right after the help is closed, and only those that move count while held down", async (trial) => {
  const { page, worker } = await seated(trial);
  const ids = await askedFor(page, worker, ["a", "b", "c"]);
  await page.keyboard.press("?");
  await page.waitForSelector("#help[open]");
  await page.keyboard.press("Escape");
  for (let at = 0; at < 3; at += 1) await page.keyboard.down("j");
  await page.waitForSelector(`${card(ids[2])}.current`);
  await page.keyboard.up("j");
  await page.keyboard.down("d");
  await settled(page);
  await page.keyboard.down("d");
  assert.equal((await worker("get", ids[2])).status, "pending");
});

test("the columns of the log stand below each other", async (trial) => {
  const { page, worker } = await seated(trial);
  const [first] = await askedFor(page, worker, ["a", "a_longer_name"]);
  await decide(page, first);
  await page.click("nav a[href='#log']");
  await page.waitForSelector(".verification.intact");
  const edges = await page.$$eval(".call .beginning", (found) => found.map((one) => one.getBoundingClientRect().left));
  assert.equal(edges.length, 2);
  assert.equal(edges[0], edges[1]);
});

test("the list does not move under the cursor", async (trial) => {
  const { page, worker, link } = await waitingFirst(trial, async (ask) => {
    for (const path of ["a", "b"]) await ask({ name: "first", arguments: { path } });
    for (const name of ["second", "third"]) await ask({ name });
  });
  await page.goto(link);
  await page.waitForFunction(() => document.querySelectorAll("article").length === 3);
  const tops = () =>
    page.$$eval("article, article:first-of-type button.deny", (found) => found.map((one) => one.getBoundingClientRect().top));
  const before = await tops();
  const ids = await page.$$eval("[data-id]", (found) => found.map((one) => one.dataset.id));
  await worker("ask", { name: "first", arguments: { path: "late" } });
  await page.waitForSelector("article .joining:enabled");
  await worker("decide", { approval_id: ids[0], decision: "deny" });
  await says(page, `[data-id="${ids[0]}"]`, "Denied elsewhere");
  await worker("decide", { approval_id: ids[2], decision: "deny" });
  await says(page, card(ids[2]), "Denied elsewhere");
  assert.deepEqual(await tops(), before);
  assert.equal(await page.$(`${card(ids[2])} button.approve`), null);
});

/** Until a key counts for what is in focus; the page's own clock is asked. */
async function settled(page) {
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 600)));
}

test("200 waiting requests stay quick", async (trial) => {
  const { page, worker, link } = await waitingFirst(trial, async (ask) => {
    for (let at = 0; at < 200; at += 1) await ask({ name: `tool_${at % 100}`, arguments: { at } });
  });
  await page.goto(link);
  await page.waitForFunction(() => document.querySelectorAll("article").length === 100);
  await says(page, "#count", "200");
  assert.equal((await page.$$(".joining:enabled")).length, 0);
  const steps = await page.evaluate(async () => {
    const times = [];
    for (let at = 0; at < 20; at += 1) {
      const before = performance.now();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - before);
    }
    return times.sort((one, other) => one - other);
  });
  assert.equal(await page.$eval("article.current h3", (heading) => heading.textContent), "tool_19");
  trial.diagnostic(`a step takes ${steps[10].toFixed(0)} ms, the slowest ${steps[19].toFixed(0)} ms`);
  // The middle one: a busy machine may hold any single one up.
  assert.ok(steps[10] < 150, `a step takes ${steps[10]} ms`);
  await worker("ask", { name: "last" });
  await says(page, "#count", "201");
});

test("every tool that claims to read only is allowed with one request", async (trial) => {
  const { page, worker } = await seated(trial);
  const reading = { "files/read_file": "d1", "files/list_directory": "d2" };
  const { approval_id } = await worker("ask", { name: "files/read_file", reading });
  const place = card(approval_id);
  await page.waitForSelector(place);
  await page.click(`${place} .more summary`);
  await page.select(`${place} .more select`, "4");
  const [, , reads] = await page.$$(`${place} .more input[type=checkbox]`);
  await reads.click();
  await page.click(`${place} button.approve`);
  await decided(page, approval_id);
  await page.click("nav a[href='#standing']");
  await page.waitForFunction(() => document.querySelectorAll("#standing-list li").length === 2);
  await says(page, "#standing-list", "files/list_directory");
  await page.click("#standing-list button");
  await page.waitForFunction(() => document.querySelectorAll("#standing-list li").length === 1);
});

/** A desk whose requests wait before a window is open. */
async function waitingFirst(trial, fill) {
  const desk = await opened(trial);
  await fill((given) => desk.worker("ask", given));
  const { page, noted } = await aWindow(trial);
  return { ...desk, page, noted };
}

test("hostile arguments are shown, and nothing of them is rendered", async (trial) => {
  const desk = await seated(trial);
  const { page, worker } = desk;
  const { approval_id } = await worker("ask", {
    arguments: { [HOSTILE]: [HOSTILE] },
    name: HOSTILE,
    reason: HOSTILE,
    prompt: HOSTILE,
    description: HOSTILE,
    definition_change: `description: ${JSON.stringify(HOSTILE)} is now "x"\n${HOSTILE}`,
  });
  await page.waitForSelector(`${card(approval_id)} button.approve`);
  const shown = await textOf(page, card(approval_id));
  for (const words of ["<img src=x onerror=", "</script><script>alert(2)</script>", "\\u202efdp.exe", "\\u200bb", "\\u001b[31m"]) {
    assert.ok(shown.includes(words), words);
  }
  assert.ok(!/[\u202e\u200b\u0000\u001b]/.test(shown));
  const elements = await page.$eval(card(approval_id), (place) => place.querySelectorAll("img, script, iframe, b, a").length);
  assert.equal(elements, 0);
  await page.click("nav a[href='#log']");
  await says(page, ".call .tool", "<img src=x onerror=");
  await assertClean(desk);
});

test("long arguments are shown whole", async (trial) => {
  const { page, worker } = await seated(trial, { width: 320, height: 700 });
  const text = `${"x".repeat(100_000)}the end`;
  const { approval_id } = await worker("ask", { arguments: { text } });
  await page.waitForSelector(`${card(approval_id)} button.approve`);
  assert.equal(await textOf(page, `${card(approval_id)} pre`), text);
  await says(page, `${card(approval_id)} .size`, "100,007 characters");
  const height = await page.$eval(card(approval_id), (place) => place.getBoundingClientRect().height);
  assert.ok(height < 1200, `the card is ${height} high`);
});

test("a changed definition is shown as a diff", async (trial) => {
  const { page, worker } = await seated(trial);
  const definition_change = 'description: "Read." is now "Write."\ninputSchema.x: {"a": 1} is gone\nan odd line';
  const { approval_id } = await worker("ask", { definition_change });
  await page.waitForSelector(`${card(approval_id)} .change`);
  const sides = (name) => page.$$eval(`${card(approval_id)} .${name}`, (found) => found.map((one) => one.textContent));
  assert.deepEqual(await sides("was"), ['− "Read."', '− {"a": 1}']);
  assert.deepEqual(await sides("is"), ['+ "Write."']);
  assert.match(await textOf(page, `${card(approval_id)} .change`), /an odd line/);
});

test("the log says whether it is intact", async (trial) => {
  const { page, worker } = await seated(trial);
  await worker("ask", {});
  await worker("ask", {});
  await page.click("nav a[href='#log']");
  await page.waitForSelector(".verification.intact");
  await worker("spoil", 1);
  await page.click("#verify");
  await page.waitForSelector(".verification.broken");
  await says(page, "#verification", "record 1 was changed");
});

test("everything can be done with the keyboard", async (trial) => {
  const { page, worker } = await seated(trial);
  const { approval_id } = await worker("ask", {});
  await page.waitForSelector(`${card(approval_id)} button.approve`);
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim() || document.activeElement.tagName);
  const tabTo = async (wanted) => {
    for (let presses = 0; presses < 20; presses += 1) {
      await page.keyboard.press("Tab");
      if ((await focused()) === wanted) return;
    }
    assert.fail(`${wanted} cannot be reached`);
  };
  await tabTo("Skip to the requests");
  await page.keyboard.press("Enter");
  await tabTo("INPUT");
  await tabTo("Approve");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid");
  await page.keyboard.press("Enter");
  await decided(page, approval_id);
  assert.equal((await worker("get", approval_id)).status, "approved");
  assert.ok(await page.$eval(card(approval_id), (place) => place === document.activeElement));
  await tabTo("Remove from this list");
  await page.keyboard.press("Space");
  await page.waitForFunction((where) => !document.querySelector(where), {}, card(approval_id));
  await page.keyboard.down("Shift");
  await page.keyboard.press("Tab");
  await page.keyboard.up("Shift");
  assert.equal(await focused(), "Log");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".verification.intact");
});

for (const [width, language] of [[320, "ja"], [1200, "en"]]) {
  test(`a window of ${width} pixels needs no scrolling sideways (${language})`, async (trial) => {
    const { page, worker } = await seated(trial, { width, height: 700, language });
    const wide = "x".repeat(300);
    const { approval_id } = await worker("ask", {
      arguments: { [wide]: wide }, name: wide, reason: wide, definition_change: `${wide}: "a" is now "b"`,
    });
    const other = (await worker("ask", { name: "other" })).approval_id;
    await page.waitForSelector(`${card(approval_id)} .more summary`);
    await page.click(`${card(approval_id)} .more summary`);
    const isWide = () => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    assert.equal(await isWide(), false);
    assert.equal(await page.$eval("html", (html) => html.lang), language);
    assert.match(await textOf(page, card(other)), language === "ja" ? /承認/ : /Approve/);
    await page.waitForSelector(`${card(other)} button.approve`);
    await page.select(`${card(approval_id)} select`, "4");
    await decide(page, approval_id);
    assert.equal(await isWide(), false);
    for (const part of ["standing", "log"]) {
      await page.click(`nav a[href='#${part}']`);
      await page.waitForFunction((name) => document.getElementById(name).textContent.includes("xxx"), {}, part);
      assert.equal(await isWide(), false, part);
    }
  });
}

for (const scheme of ["light", "dark"]) {
  test(`every text has a contrast of 4.5 or more (${scheme})`, async (trial) => {
    const { page, worker } = await seated(trial, { scheme });
    const definition_change = 'description: "Read." is now "Write."';
    const asked = [];
    for (const risk_level of [3, 4]) {
      asked.push((await worker("ask", { definition_change, risk_level, name: `tool ${risk_level}` })).approval_id);
    }
    for (const id of asked) await page.waitForSelector(`${card(id)} button.approve`);
    assert.deepEqual(await page.evaluate(tooFaint), []);
    await page.click(`${card(asked[0])} .more summary`);
    await page.select(`${card(asked[0])} select`, "1");
    await decide(page, asked[0]);
    assert.deepEqual(await page.evaluate(tooFaint), []);
    for (const [part, there] of [["standing", "#standing-list li"], ["log", ".verification.intact"]]) {
      await page.click(`nav a[href='#${part}']`);
      await page.waitForSelector(there);
      assert.deepEqual(await page.evaluate(tooFaint), [], part);
    }
  });
}

/** Texts that can be seen and do not stand out from their ground as WCAG wants; runs in the page. */
function tooFaint() {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const groundOf = (place) => {
    for (let at = place; at; at = at.parentElement) {
      const found = channels(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const place = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !place.checkVisibility() || place.closest(".unseen, .skip, option, noscript")) continue;
    const [one, other] = [light(channels(getComputedStyle(place).color)), light(groundOf(place))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) found.push(`${contrast.toFixed(2)} ${walker.currentNode.data.trim().slice(0, 40)}`);
  }
  return found;
}

test("the browser notifies of requests that come while the page is hidden", async (trial) => {
  const { link, worker } = await opened(trial);
  const { page } = await aWindow(trial);
  await page.evaluateOnNewDocument(() => {
    window.notices = [];
    window.Notification = class {
      static permission = "default";
      static async requestPermission() {
        this.permission = "granted";
      }
      constructor(title, { body }) {
        window.notices.push(body);
      }
    };
    Object.defineProperty(document, "hidden", { get: () => window.isHidden });
  });
  await page.goto(link);
  await (await page.waitForSelector("#notify:not([hidden])")).click();
  await page.waitForSelector("#notify[hidden]");
  const [, seen] = await askedFor(page, worker, ["first", "seen"]);
  await page.evaluate(() => (window.isHidden = true));
  await worker("ask", { name: "unseen" });
  await page.waitForFunction(() => window.notices.length > 0);
  assert.deepEqual(await page.evaluate(() => window.notices), ["New request: unseen"]);
  await says(page, "#count", "3");
  await decide(page, seen);
  await says(page, "#count", "2");
});

test("each person of a team signs in, and their name is in the log", async (trial) => {
  const { link, worker } = await opened(trial, { isForTeam: true });
  const first = (await worker("ask", { name: "first" })).approval_id;
  const second = (await worker("ask", { name: "second" })).approval_id;
  const { page, noted } = await aWindow(trial, { width: 390 });
  const signIn = async (token) => {
    await page.type("input[name=token]", token);
    await page.keyboard.press("Enter");
  };
  await page.goto(link);
  await signIn("made-up");
  await says(page, ".problem", "not valid");
  await signIn(TOKENS.ann);
  await says(page, "#who", "ann");
  await decide(page, first);
  const room = page.url();
  await page.click("#sign-out");
  await page.waitForSelector("input[name=token]");
  await page.goto(room);
  await signIn(TOKENS.bob);
  await says(page, "#who", "bob");
  await decide(page, second, "deny");
  await page.click("nav a[href='#log']");
  await says(page, "#calls", "allowed by ann");
  await says(page, "#calls", "denied by bob");
  noted.problems = noted.problems.filter((problem) => !problem.includes("401"));
  await assertClean({ page, noted, link });
  await page.browserContext().deleteCookie(...(await page.browserContext().cookies()));
  await says(page, "#connection", "You are signed out");
});

test("a page whose desk was closed says so", async (trial) => {
  const { page, desk } = await seated(trial);
  desk.kill("SIGINT");
  await page.waitForSelector(".connection.lost");
  await says(page, "#connection", "No connection");
  const code = await within(new Promise((resolve) => (desk.exitCode === null ? desk.on("exit", resolve) : resolve(desk.exitCode))), "the end");
  assert.equal(code, 130);
});
