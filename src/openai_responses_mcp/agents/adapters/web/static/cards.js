// One request as a card: who asks, what will run, why, and the controls that decide it.
//
// A card is made once and stays where it is until the reader removes it, also when it was decided elsewhere: nothing moves
// below a finger or a pointer that is about to decide something.

import { changes } from "./changes.js";
import { block, button, data, element, list } from "./elements.js";
import { More } from "./more.js";
import { change, look, Refusal } from "./server.js";
import { moment, number, words } from "./words.js";

const LONG_ARGUMENTS = 1500;
const AT_ONCE = 20;

export class Card {
  /** `onChanged` is told whenever the card is selected, decided or removed. */
  constructor(approvalId, onChanged) {
    this.id = approvalId;
    this.name = "";
    this.isOpen = true;
    this.onChanged = onChanged;
    this.checkbox = element("input", { type: "checkbox", onchange: onChanged, disabled: true });
    this.body = element("div", {}, words.loading);
    this.footer = element("div");
    this.place = element("article", { className: "card new", tabIndex: -1 }, this.body, this.footer);
  }

  get isChosen() {
    return this.isOpen && this.checkbox.checked;
  }

  async load() {
    try {
      this.show(await look(`requests/${encodeURIComponent(this.id)}`));
    } catch (error) {
      this.body.replaceChildren(problem(error), button(words.again, "quiet", () => this.load()));
    }
  }

  show(request) {
    this.name = request.tool_name;
    this.checkbox.disabled = !this.isOpen;
    const heading = element("h3", { id: `of-${this.id}` }, data(request.tool_name));
    this.place.setAttribute("aria-labelledby", heading.id);
    this.body.replaceChildren(
      element("header", {}, this.choosing(), heading, badge(request.tool_kind), riskBadge(request.risk_level)),
      facts(request),
      request.definition_change && changed(request.definition_change),
      ...run(request.arguments),
    );
    // It may have been decided elsewhere while it was read.
    if (this.isOpen) this.footer.replaceChildren(this.deciding(request));
  }

  choosing() {
    const label = element("span", { className: "unseen" }, `${words.choose}: ${this.name}`);
    return element("label", { className: "choose" }, this.checkbox, label);
  }

  deciding(request) {
    this.comment = element("input", { type: "text", maxLength: 2000, autocomplete: "off" });
    this.buttons = [
      button(words.approve, "approve", () => this.decide("approve")),
      button(words.deny, "deny", () => this.decide("deny")),
    ];
    const label = element("label", { className: "field" }, words.commentHint, this.comment);
    this.more = new More(request, () => (this.buttons[0].textContent = this.more.approval));
    return element("div", {}, element("div", { className: "deciding" }, label, ...this.buttons), this.more.place);
  }

  async decide(decision) {
    await decideAll([this], decision);
  }

  /** As it stands on the card, also when several are decided at once: nothing that was set here is passed over. */
  choice(decision, comment) {
    const said = this.comment.value || comment || null;
    return { approval_id: this.id, decision, comment: said, ...this.more.chosen(decision) };
  }

  /** While an answer is on its way, nothing can be decided a second time. */
  hold(isHeld) {
    // A control that is switched off loses the focus, and whoever uses the keyboard would have to look for it.
    if (isHeld) this.focused = this.place.contains(document.activeElement) ? document.activeElement : null;
    for (const one of [...this.buttons, ...this.more.controls, this.comment, this.checkbox]) one.disabled = isHeld;
    if (isHeld) return;
    this.more.show();
    this.focused?.focus();
  }

  settle(result) {
    if (result.error) {
      this.hold(false);
      this.tell(problem(result.error));
      return;
    }
    const isApproved = result.decision === "approve";
    const outcome = element("p", { className: `outcome ${isApproved ? "approved" : "denied"}` });
    outcome.textContent = isApproved ? words.approved : words.denied;
    if (result.token) this.close([outcome, token(result.token)], copying(result.token));
    else this.close([outcome]);
  }

  tell(sentence) {
    this.footer.querySelector(".problem")?.remove();
    this.footer.append(sentence);
  }

  /** Somebody else was quicker, or the request is not asked any more; what became of it follows. */
  async vanish() {
    if (!this.isOpen) return;
    const outcome = element("p", { className: "outcome", role: "status" }, words.elsewhere);
    this.close([outcome]);
    const found = await look(`requests/${encodeURIComponent(this.id)}`).catch(() => undefined);
    outcome.textContent = words.became[found?.status] ?? words.elsewhere;
  }

  close(told, ...buttons) {
    const hadFocus = this.focused || this.place.contains(document.activeElement);
    this.isOpen = false;
    this.checkbox.checked = false;
    this.checkbox.disabled = true;
    this.place.classList.add("decided");
    const dismissing = button(words.dismiss, "quiet", () => this.remove());
    this.footer.replaceChildren(...told, element("div", { className: "afterwards" }, ...buttons, dismissing));
    if (hadFocus) this.place.focus();
    this.onChanged();
  }

  remove() {
    const next = this.place.nextElementSibling ?? this.place.previousElementSibling ?? document.querySelector("main");
    this.place.remove();
    next.focus();
    this.onChanged(this);
  }
}

/** The same decision for each of the cards. `comment` is for those that have none of their own. */
export async function decideAll(cards, decision, comment = "") {
  for (const card of cards) card.hold(true);
  // Not all in one request: however many they are, an answer comes in time.
  for (let at = 0; at < cards.length; at += AT_ONCE) await decideSome(cards.slice(at, at + AT_ONCE), decision, comment);
}

async function decideSome(cards, decision, comment) {
  try {
    const { decided } = await change("decisions", { decisions: cards.map((card) => card.choice(decision, comment)) });
    for (const result of decided) cards.find((card) => card.id === result.approval_id).settle(result);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    for (const card of cards) card.settle({ error });
  }
}

function facts(request) {
  const usual = `May ${request.tool_kind} ${request.tool_name} run? ${request.reason}`.trim();
  const rows = [
    [words.who, request.agent_name && data(request.agent_name)],
    [words.run, data(request.run_id)],
    [words.why, request.reason && data(request.reason)],
    [words.question, request.prompt !== usual && data(request.prompt)],
    [words.asked, moment(request.created_at)],
    [words.tool, request.tool_description && data(request.tool_description)],
  ];
  return list(rows);
}

function changed(text) {
  return element("div", { className: "change" }, element("h4", {}, words.changed), changes(text));
}

function run(text) {
  const isLong = text.length > LONG_ARGUMENTS;
  const size = isLong && element("p", { className: "size" }, words.size(number(text.length)));
  return [element("h4", {}, words.willRun), block(text, words.willRun), size || null].filter(Boolean);
}

function badge(text) {
  return element("span", { className: "badge" }, text);
}

function riskBadge(level) {
  const made = badge(words.risk(level));
  if (level >= 3) made.classList.add(level >= 4 ? "grave" : "risky");
  return made;
}

/** The same that a terminal shows. It is nowhere else: whoever reloads the page has lost it. */
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
  return element("p", { className: "problem", role: "alert" }, data(error.message));
}
