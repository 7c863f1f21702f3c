// Requests that are alike, as one card: what will run first, then why, and the controls that decide.
//
// A card shows each request with all its arguments, and a decision covers exactly the requests that it shows. One that
// arrives later joins only when the reader asks to see it: nothing is added below a finger that is about to decide.

import { changes } from "./changes.js";
import { block, button, data, element, list } from "./elements.js";
import { More } from "./more.js";
import { change, look, Refusal } from "./server.js";
import { language, left, moment, number, words } from "./words.js";

const AT_ONCE = 20;
const GONE_AFTER_MS = 4_000;

/** Requests with the same likeness share a card. */
export function likeness(request) {
  const { tool_kind, tool_name, reason, definition_change, agent_name } = request;
  return JSON.stringify([tool_kind, tool_name, reason, definition_change, agent_name]);
}

export class Card {
  /** `onChanged` is called whenever the card is selected, decided or removed. */
  constructor(request, onChanged) {
    this.likeness = likeness(request);
    this.name = request.tool_name;
    this.onChanged = onChanged;
    this.items = [];
    this.later = [];
    this.isOpen = true;
    this.checkbox = element("input", { type: "checkbox", onchange: () => onChanged() });
    this.place = element("article", { className: "card new", tabIndex: -1 });
    this.place.onanimationend = () => this.place.classList.remove("new");
    this.count = element("span", { className: "badge", hidden: true });
    this.time = element("span", { className: "left" });
    this.runs = element("div", { className: "runs" });
    this.joining = button(words.joined(1), "quiet joining", () => this.showLater());
    this.joining.disabled = true;
    this.footer = element("div");
    const heading = element("h3", { id: `of-${request.approval_id}` }, data(request.tool_name));
    this.place.setAttribute("aria-labelledby", heading.id);
    this.place.append(
      element("header", {}, this.choosing(), heading, ...badges(request), this.count, this.time),
      this.runs,
      request.definition_change ? changed(request.definition_change) : "",
      facts(request, this.joining),
      this.footer,
    );
    this.footer.append(this.deciding(request));
    this.show(request);
  }

  get isChosen() {
    return this.isOpen && this.checkbox.checked;
  }

  get ids() {
    return this.items.map((item) => item.approval_id);
  }

  get text() {
    return `${this.name} ${this.items.map((item) => item.arguments).join(" ")}`.toLowerCase();
  }

  /** One more of the kind; it is not part of any decision before it is shown. */
  join(request) {
    this.later.push(request);
    this.offerLater();
  }

  offerLater() {
    this.joining.disabled = !this.later.length;
    if (this.later.length) this.joining.textContent = words.joined(this.later.length);
  }

  showLater() {
    for (const request of this.later.splice(0)) this.show(request);
    this.offerLater();
    this.onChanged();
  }

  show(request) {
    this.items.push(request);
    this.runs.append(run(request));
    this.more.setSingle(this.items.length === 1);
    this.label();
  }

  label() {
    const many = this.items.length;
    this.count.hidden = many < 2;
    this.count.textContent = words.alike(number(many));
    this.buttons[0].textContent = many > 1 ? words.approveAll(number(many)) : this.more.approval;
    this.buttons[1].textContent = many > 1 ? words.denyAll(number(many)) : words.deny;
    this.buttons[2].textContent = words.allowSession;
  }

  /** How much time is left; called every second. */
  tick(now) {
    const ends = this.items.map((item) => item.waits_until).filter(Boolean).sort();
    this.time.textContent = this.isOpen && ends.length ? left(ends[0], now) : "";
  }

  choosing() {
    const label = element("span", { className: "unseen" }, `${words.choose}: ${this.name}`);
    return element("label", { className: "choose" }, this.checkbox, label);
  }

  deciding(request) {
    this.comment = element("input", { type: "text", maxLength: 2000, autocomplete: "off", placeholder: words.commentHint });
    this.comment.setAttribute("aria-label", words.commentHint);
    this.buttons = [
      button(words.approve, "approve", () => this.decide("approve")),
      button(words.deny, "deny", () => this.decide("deny")),
      button(words.allowSession, "quiet session", () => this.decide("session")),
    ];
    this.more = new More(request, () => this.label());
    return element("div", {}, element("div", { className: "deciding" }, this.comment, ...this.buttons), this.more.place);
  }

  async decide(decision) {
    await decideAll([this], decision);
  }

  /** As it stands on the card, also when several cards are decided at once: nothing that was set here is passed over. */
  choices(decision, comment) {
    const said = this.comment.value || comment || null;
    const extra = decision === "session" ? { from_now_on: { for_session: true } } : this.more.chosen(decision);
    const verdict = decision === "session" ? "approve" : decision;
    const [first, ...rest] = this.ids;
    // A standing approval is made once; it lets the others of the card through as well.
    return [
      { approval_id: first, decision: verdict, comment: said, ...extra },
      ...rest.map((id) => ({ approval_id: id, decision: verdict, comment: said, ...(extra.tell_model ? extra : {}) })),
    ];
  }

  /** While an answer is on its way, nothing can be decided a second time. */
  hold(isHeld) {
    // A control that is switched off loses the focus, and a reader with a keyboard would have to look for it.
    if (isHeld) this.focused = this.place.contains(document.activeElement) ? document.activeElement : null;
    for (const one of [...this.buttons, ...this.more.controls, this.comment, this.checkbox]) one.disabled = isHeld;
    if (isHeld) return;
    this.more.show();
    this.focused?.focus();
  }

  settle(results) {
    const failed = results.filter((result) => result.error);
    const done = results.filter((result) => !result.error);
    for (const result of done) this.drop(result.approval_id);
    if (failed.length) {
      this.hold(false);
      if (!this.items.length) return this.close([problem(failed[0].error)]);
      this.label();
      return this.say(problem(failed[0].error));
    }
    const isApproved = results[0].decision === "approve";
    const outcome = element("p", { className: `outcome ${isApproved ? "approved" : "denied"}`, role: "status" });
    outcome.textContent = isApproved ? words.approved : words.denied;
    const tokens = done.filter((result) => result.token).map((result) => result.token);
    const gone = new Set(done.map((result) => result.kept_because_gone).filter(Boolean));
    const kept = [...gone].map((who) => element("p", {}, words.keptBecauseGone[who]));
    if (tokens.length) this.close([outcome, ...tokens.map(token)], ...tokens.map(copying));
    else this.close([outcome, ...kept], element("a", { href: "#log" }, words.seeLog));
  }

  drop(approvalId) {
    this.items = this.items.filter((item) => item.approval_id !== approvalId);
  }

  say(sentence) {
    this.footer.querySelector(".problem")?.remove();
    this.footer.append(sentence);
  }

  /** Decided elsewhere, or not asked any more; what became of it follows. */
  async vanish(approvalId) {
    this.later = this.later.filter((request) => request.approval_id !== approvalId);
    this.offerLater();
    if (!this.isOpen || !this.ids.includes(approvalId)) return;
    const shown = this.runs.querySelector(`[data-id="${CSS.escape(approvalId)}"]`);
    const outcome = element("p", { className: "outcome", role: "status" }, words.elsewhere);
    this.drop(approvalId);
    if (this.items.length) {
      shown.append(outcome);
      this.label();
    } else this.close([outcome]);
    const found = await look(`requests?ids=${encodeURIComponent(approvalId)}`).catch(() => undefined);
    outcome.textContent = words.became[found?.requests[0]?.status] ?? words.elsewhere;
  }

  close(said, ...buttons) {
    const hadFocus = this.focused || this.place.contains(document.activeElement);
    const saysMore = said.length > 1;
    this.isOpen = false;
    this.checkbox.checked = false;
    this.checkbox.disabled = true;
    this.joining.disabled = true;
    // The cards below stay where they are.
    this.footer.style.minHeight = `${this.footer.getBoundingClientRect().height}px`;
    this.place.classList.add("decided");
    this.time.textContent = "";
    const dismissing = button(words.dismiss, "quiet", () => this.remove());
    this.footer.replaceChildren(...said, element("div", { className: "afterwards" }, ...buttons, dismissing));
    if (hadFocus) this.place.focus({ preventScroll: true });
    // A token is nowhere else, and a call that does not run now has to be repeated: such a card stays until the reader removes it.
    if (!saysMore) setTimeout(() => this.leave(), GONE_AFTER_MS);
    this.onChanged();
  }

  /** Goes by itself, but never while the pointer is in the list: what is below it would move. */
  leave() {
    if (!this.place.isConnected) return;
    if (this.place.parentElement.matches(":hover")) setTimeout(() => this.leave(), GONE_AFTER_MS / 4);
    else this.remove();
  }

  remove() {
    const hadFocus = this.place.contains(document.activeElement);
    const next = this.place.nextElementSibling ?? this.place.previousElementSibling ?? document.querySelector("main");
    this.place.remove();
    if (hadFocus) next.focus({ preventScroll: true });
    this.onChanged(this);
  }
}

/** The same decision for each card. `comment` is for those without one. */
export async function decideAll(cards, decision, comment = "") {
  for (const card of cards) card.hold(true);
  for (const card of cards) await decideCard(card, card.choices(decision, comment));
}

/** Not all in one request: however many they are, an answer comes in time. */
async function decideCard(card, choices) {
  const results = [];
  try {
    for (let at = 0; at < choices.length; at += AT_ONCE) {
      const { decided } = await change("decisions", { decisions: choices.slice(at, at + AT_ONCE) });
      results.push(...decided);
    }
    card.settle(results);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    card.settle([...results, { error }]);
  }
}

/** One request: every argument, long texts with their line breaks. */
function run(request) {
  const place = element("div", { className: "run" });
  place.dataset.id = request.approval_id;
  if (request.parts.length) place.append(...request.parts.map(argument));
  else place.append(element("p", { className: "size" }, words.noArguments));
  return place;
}

function argument({ name, text, json, lines, characters }) {
  if (text === undefined) return element("pre", { className: "argument" }, `${name}: ${json}`);
  const size = words.textSize(number(lines), number(characters));
  return element("div", { className: "argument" }, element("p", { className: "size" }, data(name), `: ${size}`), block(text, name));
}

function facts(request, joining) {
  const usual = `May ${request.tool_kind} ${request.tool_name} run? ${request.reason}`.trim();
  const about = [
    [words.why, request.reason && data(request.why[language])],
    [words.question, request.prompt !== usual && data(request.prompt)],
    [words.claim, request.reading_tools.length && words.claimsToRead],
  ];
  const origin = element("p", { className: "origin" });
  origin.append(
    ...[request.agent_name && data(request.agent_name), data(request.run_id), moment(request.created_at)]
      .filter(Boolean)
      .flatMap((part, at) => (at ? [" · ", part] : [part])),
  );
  const description = request.tool_description
    ? element("details", {}, element("summary", {}, words.tool), data(request.tool_description, "p"))
    : "";
  return element("div", { className: "facts" }, list(about), element("div", { className: "besides" }, description, origin, joining));
}

function changed(text) {
  return element("div", { className: "change" }, element("h4", {}, words.changed), changes(text));
}

/** Behind a guard every tool is one of MCP, and its risk the usual one unless a rule says otherwise. */
function badges(request) {
  if (!request.is_of_guard) return [badge(request.tool_kind), riskBadge(request.risk_level)];
  return request.risk_level > 3 ? [riskBadge(request.risk_level)] : [];
}

function badge(text) {
  return element("span", { className: "badge" }, text);
}

function riskBadge(level) {
  const made = badge(words.risk(level));
  if (level >= 3) made.classList.add(level >= 4 ? "grave" : "risky");
  return made;
}

/** The same that a terminal shows. It is nowhere else: after a reload it is gone. */
function token(made) {
  const rows = [
    [words.token, element("code", { className: "token" }, made.token)],
    [words.run, data(made.run_id)],
    [words.expires, moment(made.expires_at)],
  ];
  return list(rows);
}

function copying(made) {
  const place = button(words.copy, "quiet", async () => {
    const isCopied = await navigator.clipboard.writeText(made.token).then(() => true, () => false);
    place.textContent = isCopied ? words.copied : words.notCopied;
  });
  return place;
}

function problem(error) {
  return element("p", { className: "problem", role: "alert" }, data(error.says?.[language] ?? error.message));
}
