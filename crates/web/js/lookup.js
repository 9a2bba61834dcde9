// Search for users while a handle is typed: after a pause, one request at a time, with results cached for a minute.

import { get, visible } from "./api.js";
import { pause } from "./dom.js";

const PAUSE_MS = 200;
const KEPT_MS = 60_000;
const KEPT_MAX = 200;

const kept = new Map();

/**
 * Creates a search function: with the parameter `handle` for the exact handle, with `search` for similar prefixes. It
 * returns a list of users, or undefined if it was called again meanwhile or the server did not respond.
 */
export function finder(parameter, limit = "") {
  let asked = new AbortController();
  return async (text) => {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    const path = visible(`/v1/users?${parameter}=${encodeURIComponent(text)}${limit}`);
    const known = kept.get(path);
    if (known && known.at > Date.now() - KEPT_MS) return known.users;
    await pause(PAUSE_MS, signal);
    if (signal.aborted) return undefined;
    const page = await get(path, signal).catch(() => null);
    if (signal.aborted || !page) return undefined;
    kept.delete(path);
    kept.set(path, { users: page.items, at: Date.now() });
    if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
    return page.items;
  };
}
