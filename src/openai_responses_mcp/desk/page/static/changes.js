// The change of a definition as a diff. Each line of it tells one part: where, what it was, what it is.

import { data, element } from "./elements.js";

/** A line that can be read in only one way becomes a diff; any other stays a line. */
export function changes(text) {
  return element("pre", { tabIndex: 0 }, ...text.split("\n").map(shown));
}

function shown(line) {
  const readings = [...split(line, ": ")].flatMap(([where, rest]) => [...both(where, rest), ...one(where, rest)]);
  if (readings.length !== 1) return data(`${line}\n`);
  const [{ where, was, is }] = readings;
  return element("span", {}, data(`${where}\n`), was && side("was", "− ", was), is && side("is", "+ ", is));
}

function* both(where, rest) {
  for (const [was, is] of split(rest, " is now ")) if (isJson(was) && isJson(is)) yield { where, was, is };
}

function* one(where, rest) {
  for (const [ending, name] of [[" is gone", "was"], [" is new", "is"]]) {
    const value = rest.slice(0, -ending.length);
    if (rest.endsWith(ending) && isJson(value)) yield { where, [name]: value };
  }
}

function* split(text, mark) {
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) {
    yield [text.slice(0, at), text.slice(at + mark.length)];
  }
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function side(className, sign, text) {
  return element("span", { className }, sign, data(text));
}
