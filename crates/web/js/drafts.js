// Unsent texts, for each user and each place, stored in the tab. A draft has the idempotency key of its
// request, so that a draft whose response was lost is not posted twice.

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

/** Stores a draft; deletes it if it is null or has an empty text. */
export function keepDraft(place, kept = null) {
  const drafts = all();
  drafts.delete(place);
  if (kept?.text) drafts.set(place, kept);
  while (drafts.size > DRAFTS_MAX) drafts.delete(drafts.keys().next().value);
  try {
    sessionStorage.setItem(name(), JSON.stringify([...drafts]));
  } catch {
    // If the storage of the tab is full, there is no draft.
  }
}
