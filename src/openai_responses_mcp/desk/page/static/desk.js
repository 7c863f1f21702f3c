// The page: which part of it is shown, what waits, the keys, and decisions on several cards at once.
//
// The desk is asked every second what waits, and mostly says that nothing is new. Unlike a connection that stays open,
// that works in any number of windows, and after the machine has slept.

import { Card, decideAll, likeness } from "./cards.js";
import { find } from "./elements.js";
import * as log from "./log.js";
import { change, look, who } from "./server.js";
import * as standing from "./standing.js";
import { translate, words } from "./words.js";

const BETWEEN_LOOKS_MS = 1_000;
const READ_AT_ONCE = 50;
const SETTLED_MS = 500;
const PARTS = ["waiting", "standing", "log"];
const LOOKS_BETWEEN_LOGS = 5;

const cards = new Set();
const cardOf = new Map();
const known = {};
let part = "waiting";
let looks = 0;
let guards = [];
let current;
let last;
let currentSince = 0;

// -----------------------------------------------------------------------------------------------------------------
// What waits

async function watch() {
  try {
    const news = await look("waiting", known);
    if (news) await update(news);
    await refreshPart();
    connected("live", words.live);
  } catch (error) {
    // Asked for whole the next time: what was read is not shown yet.
    delete known.tag;
    trouble(error);
  }
  for (const card of cards) card.tick(Date.now());
  setTimeout(watch, BETWEEN_LOOKS_MS);
}

/** The log is longer than the rest, and is looked at less often. */
async function refreshPart() {
  looks += 1;
  if (part === "standing") await standing.refresh();
  if (part === "log" && looks % LOOKS_BETWEEN_LOGS === 0) await log.refresh();
}

async function update({ waiting, guards: running = [] }) {
  guards = running;
  const there = new Set(waiting);
  for (const [id, card] of cardOf) {
    if (there.has(id)) continue;
    cardOf.delete(id);
    card.vanish(id);
  }
  const arrived = waiting.filter((id) => !cardOf.has(id));
  const requests = [];
  for (let at = 0; at < arrived.length; at += READ_AT_ONCE) {
    const ids = arrived.slice(at, at + READ_AT_ONCE).map(encodeURIComponent).join(",");
    requests.push(...(await look(`requests?ids=${ids}`)).requests);
  }
  // Those of one look are put together; later ones join when the reader wants to see them.
  const fresh = new Set();
  for (const request of requests) take(request, fresh);
  summarise();
  if (requests.length) announce(requests.length, requests.at(-1).tool_name);
}

function take(request, fresh) {
  const alike = likeness(request);
  const card = [...cards].find((one) => one.isOpen && one.likeness === alike);
  if (card && fresh.has(card)) card.show(request);
  else if (card) card.join(request);
  else fresh.add(add(request));
  cardOf.set(request.approval_id, card ?? [...cards].at(-1));
}

function add(request) {
  const card = new Card(request, (removed) => {
    if (removed) cards.delete(removed);
    // Requests that were not shown are not decided: they get a new card.
    const fresh = new Set();
    if (!card.isOpen) for (const one of card.later.splice(0)) take(one, fresh);
    summarise();
  });
  cards.add(card);
  card.tick(Date.now());
  find("cards").append(card.place);
  return card;
}

function announce(count, name) {
  find("announcement").textContent = words.arrived(count, name);
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  new Notification(words.title, { body: words.arrived(count, name), tag: "desk" });
}

function summarise() {
  filter();
  const open = openCards();
  const shown = shownCards();
  const chosen = shown.filter((card) => card.isChosen);
  const waiting = open.reduce((sum, card) => sum + card.items.length + card.later.length, 0);
  find("count").textContent = String(waiting);
  document.title = waiting ? `(${waiting}) ${words.title}` : words.title;
  const isFiltered = cards.size > 0 && [...cards].every((card) => card.place.hidden);
  find("nothing").hidden = cards.size > 0 && !isFiltered;
  find("nothing").textContent = isFiltered ? words.noMatch : words.nothing(guards);
  find("several").hidden = open.length < 2;
  find("chosen").textContent = words.chosen(chosen.length);
  find("choose-all").checked = shown.length > 0 && chosen.length === shown.length;
  find("choose-all").indeterminate = chosen.length > 0 && chosen.length < shown.length;
  for (const id of ["approve-chosen", "deny-chosen"]) find(id).disabled = chosen.length === 0;
}

const openCards = () => [...cards].filter((card) => card.isOpen);
const shownCards = () => openCards().filter((card) => !card.place.hidden);

function filter() {
  const wanted = find("filter").value.trim().toLowerCase();
  for (const card of cards) card.place.hidden = Boolean(wanted) && !card.text.includes(wanted);
}

async function decideChosen(decision) {
  const comment = find("several-comment");
  const chosen = shownCards().filter((card) => card.isChosen);
  await decideAll(chosen, decision, comment.value);
  comment.value = "";
  chosen[0]?.place.focus({ preventScroll: true });
}

function chooseAll() {
  for (const card of shownCards()) card.checkbox.checked = find("choose-all").checked;
  summarise();
}

// -----------------------------------------------------------------------------------------------------------------
// Keys

function move(step) {
  const shown = shownCards();
  if (!shown.length) return;
  const at = shown.indexOf(current ?? last);
  const next = at < 0 ? shown[step > 0 ? 0 : shown.length - 1] : shown[Math.min(Math.max(at + step, 0), shown.length - 1)];
  next.place.focus();
  next.place.scrollIntoView({ block: "nearest" });
}

/** A key counts only for a card that has been in focus long enough to be seen. */
async function decideCurrent(decision) {
  if (!current?.isOpen || performance.now() - currentSince < SETTLED_MS) return;
  const shown = shownCards();
  const next = shown[shown.indexOf(current) + 1] ?? shown[shown.indexOf(current) - 1];
  const decided = current;
  await decided.decide(decision);
  if (!decided.isOpen && next?.isOpen) next.place.focus();
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  a: () => decideCurrent("approve"),
  d: () => decideCurrent("deny"),
  s: () => decideCurrent("session"),
  "/": () => find("filter").focus(),
  "?": () => find("help").showModal(),
};

/** In the filter, Enter goes to the first match. Escape leaves a field for the request that was in focus. */
function pressedInField(event) {
  const isFilter = event.target === find("filter");
  if (event.key === "Enter" && isFilter) shownCards()[0]?.place.focus();
  if (event.key !== "Escape") return;
  if (isFilter) {
    find("filter").value = "";
    summarise();
  }
  (shownCards().includes(last) ? last.place : find("main")).focus();
}

function pressed(event) {
  // The keys that choose a Japanese word are not for the page. A closed dialog may still have the focus.
  if (event.isComposing || event.target.closest("dialog[open]")) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select")) return pressedInField(event);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  // A key that is held down moves on, but decides nothing.
  if (event.repeat && event.key !== "j" && event.key !== "k") return;
  const act = keys[event.key];
  if (!act || (part !== "waiting" && event.key !== "?")) return;
  event.preventDefault();
  act();
}

function focused(event) {
  const card = [...cards].find((one) => one.place.contains(event.target));
  if (card === current) return;
  current?.place.classList.remove("current");
  current = card;
  last = card ?? last;
  currentSince = performance.now();
  current?.place.classList.add("current");
}

// -----------------------------------------------------------------------------------------------------------------
// The rest of the page

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

function offerNotices() {
  const place = find("notify");
  place.hidden = !("Notification" in window) || Notification.permission !== "default";
  place.onclick = async () => {
    await Notification.requestPermission();
    place.hidden = true;
  };
}

translate();
connected("", words.connecting);
find("several").setAttribute("aria-label", words.several);
find("several-comment").placeholder = words.commentHint;
find("several-comment").setAttribute("aria-label", words.commentHint);
find("filter").placeholder = words.filter;
find("filter").setAttribute("aria-label", words.filter);
find("filter").oninput = summarise;
find("approve-chosen").textContent = words.approveChosen;
find("deny-chosen").textContent = words.denyChosen;
find("approve-chosen").onclick = () => decideChosen("approve");
find("deny-chosen").onclick = () => decideChosen("deny");
find("choose-all").onchange = chooseAll;
find("show-help").onclick = () => find("help").showModal();
document.querySelector(".skip").onclick = (event) => {
  // The part that is shown stays the same.
  event.preventDefault();
  find("main").focus();
};
if (who) {
  find("who").textContent = who;
  find("sign-out").hidden = false;
  find("sign-out").onclick = () => change("sign-out", {}).then(() => location.assign("/"), trouble);
}
offerNotices();
log.start(trouble);
addEventListener("hashchange", showPart);
addEventListener("keydown", pressed);
addEventListener("focusin", focused);
showPart();
watch();
