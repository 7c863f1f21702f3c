// Elements from plain values. Texts become text and nothing else: there is no way through here to markup.

/** An element with properties, attributes (names with a hyphen, and role) and children, of which some may be missing. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

/** A text from a store, set apart from ours. */
export function data(text, name = "span") {
  return element(name, { className: "data" }, text);
}

/** A long text that scrolls in its own place, also with the keyboard. */
export function block(text, label) {
  return element("pre", { tabIndex: 0, role: "region", "aria-label": label }, text);
}

/** Names and values below each other; a row without a value is left out. */
export function list(rows) {
  const given = rows.filter(([, value]) => value);
  return element("dl", {}, ...given.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

export function button(text, className, onclick) {
  return element("button", { type: "button", className, onclick }, text);
}

export const find = (id) => document.getElementById(id);
