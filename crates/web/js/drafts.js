// Unsent texts, for each user and each place, stored in the tab. A draft has the idempotency key of its
// request, so that a draft whose response was lost is not posted twice.

const DRAFTS_MAX = 20;
const name = (user) => `roost.drafts.${user}`;

function all(user) {
  try {
    return new Map(JSON.parse(sessionStorage.getItem(name(user)) ?? "[]"));
  } catch {
    return new Map();
  }
}

/** The draft of a user and a place: `{ text, fields, key }`, or null. */
export const draft = (user, place) => all(user).get(place) ?? null;

/** Stores a draft; deletes it if it is null or has an empty text. */
export function keepDraft(user, place, kept = null) {
  const drafts = all(user);
  drafts.delete(place);
  if (kept?.text) drafts.set(place, kept);
  while (drafts.size > DRAFTS_MAX) drafts.delete(drafts.keys().next().value);
  try {
    sessionStorage.setItem(name(user), JSON.stringify([...drafts]));
  } catch {
    // If the storage of the tab is full, there is no draft.
  }
}

/** Deletes the draft of a request that succeeded, unless there is another one now. */
export function sentDraft(user, place, key) {
  if (draft(user, place)?.key === key) keepDraft(user, place);
}
