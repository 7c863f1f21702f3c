// The ways to decide that are more than yes and no: other arguments, from now on, and a word to the model.

import { data, element } from "./elements.js";
import { words } from "./words.js";

const HOUR = 3600;
const TERMS = [undefined, { for_seconds: HOUR }, { for_seconds: 8 * HOUR }, { for_session: true }, { always: true }];

export class More {
  /** `onChanged` is called when what an approval would mean has changed. */
  constructor(request, onChanged) {
    const changed = () => {
      this.show();
      onChanged();
    };
    this.changing = element("input", { type: "checkbox", onchange: changed, disabled: !request.can_change_arguments });
    this.text = element("textarea", { className: "json", value: request.arguments, spellcheck: false, hidden: true });
    this.text.setAttribute("aria-label", words.newArguments);
    this.text.rows = Math.min(request.arguments.split("\n").length + 1, 16);
    const options = words.holds.map((text, at) => element("option", { value: String(at) }, text));
    this.terms = element("select", { onchange: changed }, ...options);
    this.same = element("input", { type: "checkbox", disabled: true, onchange: changed });
    this.reads = element("input", { type: "checkbox", disabled: true, onchange: changed });
    const reading = request.reading_tools;
    this.telling = element("input", { type: "checkbox" });
    this.place = element(
      "details",
      { className: "more" },
      element("summary", {}, request.is_of_guard ? words.moreOfGuard : words.more),
      element("label", { className: "choose" }, this.changing, words.change),
      request.can_change_arguments ? this.text : element("p", { className: "size" }, words.cannotChange),
      element("label", { className: "field" }, words.hold, this.terms),
      element("label", { className: "choose" }, this.same, words.sameArguments),
      reading.length ? element("label", { className: "choose" }, this.reads, words.reads(reading.length)) : "",
      reading.length ? element("p", { className: "size" }, data(reading.join(", "))) : "",
      // A guarded call always says why it was denied.
      request.is_of_guard ? "" : element("label", { className: "choose" }, this.telling, words.tellModel),
    );
    this.canChange = request.can_change_arguments;
    this.isSingle = true;
  }

  /** The arguments of one request can be changed, not those of several. */
  setSingle(isSingle) {
    this.isSingle = isSingle;
    if (!isSingle) this.changing.checked = false;
    this.show();
  }

  /** What is changed is approved once: it cannot hold from now on. */
  show() {
    this.text.hidden = !this.changing.checked;
    this.changing.disabled = !this.canChange || !this.isSingle;
    this.terms.disabled = this.changing.checked;
    const isOnce = this.changing.checked || !TERMS[this.terms.value];
    this.same.disabled = isOnce || this.reads.checked;
    this.reads.disabled = isOnce || this.same.checked;
  }

  get controls() {
    return [this.changing, this.text, this.terms, this.same, this.reads, this.telling];
  }

  get approval() {
    return this.changing.checked ? words.approveChanged : words.approve;
  }

  /** What a decision carries besides the decision itself. */
  chosen(decision) {
    if (decision === "deny") return this.telling.checked ? { tell_model: true } : {};
    if (this.changing.checked) return { arguments: this.text.value };
    const terms = TERMS[this.terms.value];
    const covers = { same_arguments: this.same.checked, reads: this.reads.checked };
    return terms ? { from_now_on: { ...terms, ...covers } } : {};
  }
}
