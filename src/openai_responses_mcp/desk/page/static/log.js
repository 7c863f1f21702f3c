// The log, one line a call, newest first. A line opens to the arguments and the records of its call.

import { block, data, element, find } from "./elements.js";
import { look } from "./server.js";
import { language, moment, number, words } from "./words.js";

const known = {};
let newest = 0;
let oldest;

export function start(onProblem) {
  find("verify").onclick = () => show(onProblem);
  find("older").onclick = () => attempt(onProblem, more);
}

export async function show(onProblem) {
  await attempt(onProblem, async () => {
    find("verification").replaceChildren(words.verifying);
    find("verification").className = "verification";
    const [page, found] = [await look("log"), await look("log/verification")];
    find("calls").replaceChildren();
    append(page);
    find("verification").replaceChildren(...verdict(found));
    find("verification").classList.add(found.is_intact ? "intact" : "broken");
  });
}

/** What has come since. Whether all of it is as it was written is checked when the reader asks. */
export async function refresh() {
  const page = await look("log", known);
  if (!page) return;
  for (const call of page.calls.filter((one) => one.number <= newest)) {
    const shown = document.getElementById(`call-${call.number}`);
    if (shown && shown.dataset.records !== String(call.records.length)) shown.replaceWith(line(call, shown.open));
  }
  const later = page.calls.filter((call) => call.number > newest);
  if (!later.length) return;
  find("calls").prepend(...later.map((call) => line(call)));
  newest = later[0].number;
}

async function more() {
  append(await look(`log?before=${oldest}`));
}

async function attempt(onProblem, work) {
  try {
    await work();
  } catch (error) {
    find("verification").replaceChildren(error.message);
    onProblem(error);
  }
}

function append(page) {
  find("calls").append(...page.calls.map((call) => line(call)));
  newest = Math.max(newest, page.calls[0]?.number ?? 0);
  oldest = page.calls.at(-1)?.number ?? oldest;
  find("older").hidden = !page.has_older;
}

function line(call, isOpen = false) {
  const summary = element(
    "summary",
    {},
    element("span", { className: "number" }, number(call.number)),
    element("span", { className: "time" }, moment(call.timestamp)),
    element("span", { className: "tool" }, data(call.tool_name), call.caller ? element("span", { className: "caller" }, " · ", data(call.caller)) : ""),
    element("span", { className: `data decided ${call.decided}` }, words.decided(call.decided, call.by, call.who)),
    element("span", { className: `ended ${call.outcome}` }, words.outcomes[call.outcome]),
    element("span", { className: "beginning" }, data(call.beginning)),
  );
  const place = element("details", { className: "call", id: `call-${call.number}`, open: isOpen }, summary);
  place.dataset.records = String(call.records.length);
  // Made when it is opened: most never are.
  const fill = () => place.childElementCount === 1 && place.append(...inside(call));
  if (isOpen) fill();
  else place.addEventListener("toggle", fill, { once: true });
  return place;
}

function inside(call) {
  const rows = call.records.map((record) =>
    element(
      "li",
      {},
      element("span", { className: "time" }, moment(record.timestamp)),
      " ",
      data(record.says[language]),
      record.who ? data(` (${record.who})`) : "",
      record.why[language] ? element("span", { className: "why" }, " — ", data(record.why[language])) : "",
    ),
  );
  return [
    element("p", { className: "origin" }, `${words.run}: `, data(call.run_id)),
    call.arguments ? block(call.arguments, words.arguments) : "",
    element("ol", { className: "records" }, ...rows),
  ].filter(Boolean);
}

function verdict(found) {
  const title = element("strong", {}, found.is_intact ? words.intact : words.broken);
  const { findings, accepted, uncovered } = found.says[language];
  const lists = [findings, accepted.length ? [words.accepted, ...accepted] : []];
  return [
    title,
    element("p", {}, words.records(number(found.records))),
    ...lists.filter((list) => list.length).map((list) => element("ul", {}, ...list.map((text) => data(text, "li")))),
    uncovered && element("p", {}, data(uncovered)),
  ].filter(Boolean);
}
