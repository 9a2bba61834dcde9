// What was written and not sent yet, for each user and each place, kept in the tab. A draft has the key
// under which it is sent, so that one which was sent without an answer is not posted twice.

import { whoami } from "./session.js";

const DRAFTS_MAX = 20;
const name = () => `roost.drafts.${whoami().id}`;

function all() {
  try {
    return new Map(JSON.parse(sessionStorage.getItem(name()) ?? "[]"));
  } catch {
    return new Map();
  }
}

/** The draft of a place: `{ text, key }`, or null. */
export const draft = (place) => all().get(place) ?? null;

/** Keeps a draft; without one, or with an empty text, forgets it. */
export function keepDraft(place, kept = null) {
  const drafts = all();
  drafts.delete(place);
  if (kept?.text) drafts.set(place, kept);
  while (drafts.size > DRAFTS_MAX) drafts.delete(drafts.keys().next().value);
  try {
    sessionStorage.setItem(name(), JSON.stringify([...drafts]));
  } catch {
    // Without room in the tab there is no draft, and writing goes on.
  }
}
