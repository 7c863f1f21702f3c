// What is allowed from now on, and ending it.

import { button, data, element, find, list } from "./elements.js";
import { change, look } from "./server.js";
import { moment, words } from "./words.js";

const known = {};

/** Looked at again and again while it is shown. */
export async function refresh() {
  const news = await look("standing", known);
  if (!news) return;
  find("standing-list").replaceChildren(...news.standing.map(item));
  find("nothing-standing").hidden = news.standing.length > 0;
}

function item(standing) {
  const heading = element("h3", {}, data(standing.tool_name));
  const kind = element("span", { className: "badge" }, standing.tool_kind);
  const rows = [
    [words.valid, `${holding(standing)}, ${standing.is_for_same_arguments ? words.theseArguments : words.anyArguments}`],
    [words.made, moment(standing.created_at)],
    [words.run, data(standing.made_in)],
    [words.comment, standing.comment && data(standing.comment)],
  ];
  const place = element("li", { className: "card" }, element("header", {}, heading, kind), list(rows));
  place.append(revoking(standing, place));
  return place;
}

function holding(standing) {
  if (standing.expires_at) return words.until(moment(standing.expires_at));
  return standing.is_for_session ? words.forSession : words.always;
}

function revoking(standing, place) {
  const pressed = button(words.revoke, "deny", async () => {
    pressed.disabled = true;
    try {
      await change("revocations", { standing_id: standing.standing_id });
      pressed.replaceWith(element("p", { className: "outcome denied", role: "status" }, words.revoked));
      find("main").focus();
    } catch (error) {
      pressed.disabled = false;
      place.append(element("p", { className: "problem", role: "alert" }, data(error.message)));
    }
  });
  pressed.setAttribute("aria-label", `${words.revoke}: ${standing.tool_name}`);
  return element("div", { className: "afterwards" }, pressed);
}
