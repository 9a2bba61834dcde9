// Finds a user by the whole handle while it is typed: after a pause, one request at a time, and not again
// for the previous handle.

import { get, visible } from "./api.js";
import { pause } from "./dom.js";

const PAUSE_MS = 200;
const KEPT_MS = 60_000;
const KEPT_MAX = 200;

const kept = new Map();

/**
 * A function that finds a user by handle. It returns the user, null if there is none, and undefined if it was
 * called with another handle meanwhile or the server did not respond.
 */
export function finder() {
  let asked = new AbortController();
  return async (handle) => {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    const known = kept.get(handle);
    if (known && known.at > Date.now() - KEPT_MS) return known.user;
    await pause(PAUSE_MS, signal);
    if (signal.aborted) return undefined;
    const page = await get(visible(`/v1/users?handle=${encodeURIComponent(handle)}`), signal).catch(() => null);
    if (signal.aborted || !page) return undefined;
    const user = page.items[0] ?? null;
    kept.delete(handle);
    kept.set(handle, { user, at: Date.now() });
    if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
    return user;
  };
}
