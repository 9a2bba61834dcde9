// Drafts of unsent texts by user and place, stored in the tab. A draft keeps the idempotency key of its request, so
// that it is not posted twice after a lost response.

const DRAFTS_MAX = 20;
const name = (user) => `roost.drafts.${user}`;

function all(user) {
  try {
    return new Map(JSON.parse(sessionStorage.getItem(name(user)) ?? "[]"));
  } catch {
    return new Map();
  }
}

/** Draft of a user at a place: `{ text, fields, key }`, or null. */
export const draft = (user, place) => all(user).get(place) ?? null;

/** Stores a draft, or deletes it if it is null or has an empty text. */
export function keepDraft(user, place, kept = null) {
  const drafts = all(user);
  drafts.delete(place);
  if (kept?.text) drafts.set(place, kept);
  while (drafts.size > DRAFTS_MAX) drafts.delete(drafts.keys().next().value);
  try {
    sessionStorage.setItem(name(user), JSON.stringify([...drafts]));
  } catch {
    // Drafts are optional: the storage of the tab is full.
  }
}

/** Deletes the draft of a successful request, unless a newer draft replaced it. */
export function sentDraft(user, place, key) {
  if (draft(user, place)?.key === key) keepDraft(user, place);
}
