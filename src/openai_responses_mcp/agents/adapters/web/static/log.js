// The log, newest record first, and whether it is what was written.

import { block, data, element, find } from "./elements.js";
import { look } from "./server.js";
import { moment, number, words } from "./words.js";

const known = {};
let newest = 0;
let oldest;

export function start(onProblem) {
  find("log-headings").append(...words.headings.map((text) => element("th", { scope: "col" }, text)));
  find("verify").onclick = () => show(onProblem);
  find("older").onclick = () => told(onProblem, more);
}

export async function show(onProblem) {
  await told(onProblem, async () => {
    find("verification").replaceChildren(words.verifying);
    find("verification").className = "verification";
    const [page, found] = [await look("log"), await look("log/verification")];
    find("records").replaceChildren();
    append(page);
    find("verification").replaceChildren(...verdict(found));
    find("verification").classList.add(found.is_intact ? "intact" : "broken");
  });
}

/** What has been written since; whether all of it is as it was written is checked when somebody asks. */
export async function refresh() {
  const page = await look("log", known);
  const later = page?.records.filter((record) => record.sequence > newest) ?? [];
  if (!later.length) return;
  find("records").prepend(...later.map(row));
  newest = later[0].sequence;
}

async function more() {
  append(await look(`log?before=${oldest}`));
}

async function told(onProblem, work) {
  try {
    await work();
  } catch (error) {
    find("verification").replaceChildren(error.message);
    onProblem(error);
  }
}

function append(page) {
  find("records").append(...page.records.map(row));
  newest = Math.max(newest, page.records[0]?.sequence ?? 0);
  oldest = page.records.at(-1)?.sequence ?? oldest;
  find("older").hidden = !page.has_older;
}

function row(record) {
  const tool = [record.tool_kind, record.tool_name].filter(Boolean).join(":");
  const values = [
    number(record.sequence),
    moment(record.timestamp),
    data(record.run_id),
    data(record.event),
    data(record.decision),
    data(tool),
    element("div", {}, data(record.why), record.arguments && details(record.arguments)),
  ];
  return element("tr", {}, ...values.map((value, at) => element("td", { "data-heading": words.headings[at] }, value)));
}

function details(text) {
  return element("details", {}, element("summary", {}, words.arguments), block(text, words.arguments));
}

function verdict(found) {
  const title = element("strong", {}, found.is_intact ? words.intact : words.broken);
  const lists = [found.findings, found.accepted.length ? [words.accepted, ...found.accepted] : []];
  return [
    title,
    element("p", {}, words.records(number(found.records))),
    ...lists.filter((list) => list.length).map((list) => element("ul", {}, ...list.map((text) => data(text, "li")))),
    found.uncovered && element("p", {}, data(found.uncovered)),
  ].filter(Boolean);
}
