// The page: which part of it is shown, what waits, and the decisions on several requests at once.
//
// The desk is asked again and again what waits, and mostly says that nothing is new. Unlike a connection that stays open,
// that works in any number of windows, and after the machine has slept.

import { Card, decideAll } from "./cards.js";
import { find } from "./elements.js";
import * as log from "./log.js";
import { look } from "./server.js";
import * as standing from "./standing.js";
import { translate, words } from "./words.js";

const BETWEEN_LOOKS_MS = 1_000;
const PARTS = ["waiting", "standing", "log"];
const LOOKS_BETWEEN_LOGS = 5;

const cards = new Map();
const known = {};
let part = "waiting";
let looks = 0;

async function watch() {
  try {
    const news = await look("waiting", known);
    if (news) update(news.waiting);
    await refreshPart();
    connected("live", words.live);
  } catch (error) {
    trouble(error);
  }
  setTimeout(watch, BETWEEN_LOOKS_MS);
}

/** The log is longer than the rest, and is looked at less often. */
async function refreshPart() {
  looks += 1;
  if (part === "standing") await standing.refresh();
  if (part === "log" && looks % LOOKS_BETWEEN_LOGS === 0) await log.refresh();
}

function update(waiting) {
  const arrived = waiting.filter((id) => !cards.has(id)).map(add);
  for (const card of cards.values()) if (!waiting.includes(card.id)) card.vanish();
  summarise();
  if (arrived.length) announce(arrived);
}

function add(id) {
  const card = new Card(id, (removed) => {
    if (removed) cards.delete(removed.id);
    summarise();
  });
  cards.set(id, card);
  find("cards").append(card.place);
  return card;
}

async function announce(arrived) {
  for (const card of arrived) await card.load();
  find("announcement").textContent = words.arrived(arrived.length, arrived[0].name);
}

function summarise() {
  const open = [...cards.values()].filter((card) => card.isOpen);
  const chosen = open.filter((card) => card.isChosen);
  find("count").textContent = String(open.length);
  document.title = open.length ? `(${open.length}) ${words.title}` : words.title;
  find("nothing").hidden = cards.size > 0;
  find("several").hidden = open.length < 2;
  find("chosen").textContent = words.chosen(chosen.length);
  find("choose-all").checked = open.length > 0 && chosen.length === open.length;
  find("choose-all").indeterminate = chosen.length > 0 && chosen.length < open.length;
  for (const id of ["approve-chosen", "deny-chosen"]) find(id).disabled = chosen.length === 0;
}

async function decideChosen(decision) {
  const comment = find("several-comment");
  const chosen = [...cards.values()].filter((card) => card.isChosen);
  await decideAll(chosen, decision, comment.value);
  comment.value = "";
  chosen[0]?.place.focus();
}

function chooseAll() {
  for (const card of cards.values()) if (!card.checkbox.disabled) card.checkbox.checked = find("choose-all").checked;
  summarise();
}

function trouble(error) {
  connected("lost", error.message);
}

function connected(state, text) {
  const place = find("connection");
  place.className = `connection ${state}`;
  // Said aloud only when it changes.
  if (place.textContent !== text) place.textContent = text;
}

function showPart() {
  const wanted = location.hash.slice(1);
  part = PARTS.includes(wanted) ? wanted : "waiting";
  for (const name of PARTS) find(name).hidden = name !== part;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${part}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (part === "standing") standing.refresh().catch(trouble);
  if (part === "log") log.show(trouble);
}

translate();
connected("", words.connecting);
find("nothing").textContent = words.nothing;
find("several").setAttribute("aria-label", words.several);
find("several-comment").placeholder = words.commentHint;
find("several-comment").setAttribute("aria-label", words.commentHint);
find("approve-chosen").textContent = words.approveChosen;
find("deny-chosen").textContent = words.denyChosen;
find("approve-chosen").onclick = () => decideChosen("approve");
find("deny-chosen").onclick = () => decideChosen("deny");
find("choose-all").onchange = chooseAll;
document.querySelector(".skip").onclick = (event) => {
  // The part that is shown stays the same.
  event.preventDefault();
  find("main").focus();
};
log.start(trouble);
addEventListener("hashchange", showPart);
showPart();
watch();
