// The ways to decide that are more than yes and no.

import { element } from "./elements.js";
import { words } from "./words.js";

const HOUR = 3600;
const TERMS = [undefined, { for_seconds: HOUR }, { for_seconds: 8 * HOUR }, { for_session: true }, { always: true }];

export class More {
  constructor() {
    const options = words.holds.map((text, at) => element("option", { value: String(at) }, text));
    this.terms = element("select", { onchange: () => this.show() }, ...options);
    this.same = element("input", { type: "checkbox", disabled: true });
    this.place = element(
      "details",
      { className: "more" },
      element("summary", {}, words.more),
      element("label", { className: "field" }, words.hold, this.terms),
      element("label", { className: "choose" }, this.same, words.sameArguments),
    );
  }

  show() {
    this.same.disabled = !TERMS[this.terms.value];
  }

  get controls() {
    return [this.terms, this.same];
  }

  /** What a decision carries besides the decision itself. */
  chosen(decision) {
    const terms = TERMS[this.terms.value];
    if (!terms || decision !== "approve") return {};
    return { from_now_on: { ...terms, same_arguments: this.same.checked } };
  }
}
