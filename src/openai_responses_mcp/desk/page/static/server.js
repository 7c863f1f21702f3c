// Asking the desk. Whatever goes wrong becomes an error with a sentence that can be shown.

import { language, words } from "./words.js";

const pageToken = document.querySelector("meta[name=page-token]").content;
/** Who has signed in, on the desk for a team. */
export const who = document.querySelector("meta[name=signed-in-as]").content;
const LONGEST_WAIT_MS = 30_000;

export class Refusal extends Error {}

/** What is there now, or nothing where it is still what `known` says; the tag of it goes into `known`. */
export async function look(path, known) {
  const headers = known?.tag ? { "If-None-Match": known.tag } : {};
  const response = await send(path, { headers });
  if (response.status === 304) return undefined;
  const facts = await factsOf(response);
  if (known) known.tag = response.headers.get("ETag");
  return facts;
}

export async function change(path, body) {
  const headers = { "Content-Type": "application/json", "X-Page-Token": pageToken };
  return factsOf(await send(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function send(path, options) {
  try {
    return await fetch(path, { ...options, cache: "no-store", signal: AbortSignal.timeout(LONGEST_WAIT_MS) });
  } catch {
    throw new Refusal(words.closed);
  }
}

async function factsOf(response) {
  if (response.ok) return response.json();
  const said = await response.json().catch(() => undefined);
  // Another desk may have taken the port; it does not know this page.
  if (!said && [403, 404].includes(response.status)) throw new Refusal(who ? words.signedOut : words.shut);
  throw new Refusal(said?.error?.says?.[language] ?? said?.error?.message ?? `HTTP ${response.status}`);
}
