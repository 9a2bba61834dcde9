// Client of the public API. Unsuccessful responses and unreachable servers are thrown as ApiError. Independent of the
// pages.

import { pause } from "./dom.js";
import { credentials, whoami } from "./session.js";

/** An error of a request: `status` is 0 if there was no response. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** Whether the same request may succeed later. */
  get passes() {
    return this.status === 0 || this.status === 503;
  }
}

/** Dispatches `reached`, `lost`, `locked` (the server requires a login or a key) and `ended` (of the session). */
export const server = new EventTarget();

/** Difference of the server's clock to this one's, in milliseconds; positive if the server's is ahead. */
let ahead = 0;

/** Current time of the server's clock, in milliseconds since 1970. */
export const now = () => Date.now() + ahead;

function setClock(header) {
  const there = Date.parse(header ?? "");
  const difference = there + 500 - Date.now();
  // The header has whole seconds, so differences below two seconds are ignored.
  ahead = Math.abs(difference) > 2000 ? difference : 0;
}

/** Sends a request with the session or the key. Returns the response with any status. */
export async function send(path, { method = "GET", headers = {}, body, signal, keepalive = false } = {}) {
  const all = { ...headers, ...credentials() };
  let answer;
  try {
    answer = await fetch(path, { method, headers: all, body, signal, keepalive, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    server.dispatchEvent(new Event("lost"));
    throw new ApiError(0, "unreachable", "The server cannot be reached.");
  }
  if (answer.status === 503 && await isStarting(answer)) {
    server.dispatchEvent(new Event("lost"));
    throw new ApiError(0, "unreachable", "The server is starting.");
  }
  setClock(answer.headers.get("date"));
  server.dispatchEvent(new Event("reached"));
  if (answer.status === 401) {
    const { error } = await answer.clone().json().catch(() => ({}));
    // Errors of the API for apps have no codes.
    const isEnded = error === "not_logged_in" || path.startsWith("/api/");
    server.dispatchEvent(new Event(isEnded ? "ended" : "locked"));
  }
  return answer;
}

/** Whether the response comes from a server that is still starting and refuses all requests. */
async function isStarting(answer) {
  const { error } = await answer.clone().json().catch(() => ({}));
  return error === "starting";
}

/** Throws the error of an unsuccessful response. */
export async function thrown(answer) {
  const { error, message } = await answer.json().catch(() => ({}));
  throw new ApiError(answer.status, error ?? "unknown", sentence(message ?? `The server answered ${answer.status}.`));
}

function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

/** Sends a request and returns the response's JSON, or null if it has none. */
export async function ask(method, path, { json, ...rest } = {}) {
  const asked = { method, ...rest };
  if (json !== undefined) {
    asked.body = JSON.stringify(json);
    asked.headers = { ...rest.headers, "Content-Type": "application/json" };
  }
  const answer = await send(path, asked);
  if (!answer.ok) await thrown(answer);
  return answer.status === 204 ? null : answer.json();
}

export const get = (path, signal) => ask("GET", path, { signal });

/** Creates an idempotency key: retries with the same key return the first result. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Sends a request with an idempotency key until there is a final response, so that it takes effect once even if a
 * response is lost. Calls `waiting` before each retry.
 */
export async function insist(method, path, { headers, key = newKey(), waiting, signal, ...rest } = {}) {
  const keyed = { ...headers, "Idempotency-Key": key };
  for (let waitMs = 250; ; waitMs = Math.min(waitMs * 2, 4000)) {
    try {
      return await ask(method, path, { headers: keyed, signal, ...rest });
    } catch (problem) {
      if (!(problem instanceof ApiError) || !problem.passes || signal?.aborted) throw problem;
      waiting?.(problem);
      await pause(waitMs, signal);
    }
  }
}

/** Loads the server's description and the user logged in in this browser. A server without accounts has no such route. */
export async function greeting() {
  const answer = await send("/auth/session");
  if (answer.status === 404) return { open: true, user: null };
  if (!answer.ok) await thrown(answer);
  return answer.json();
}

/** Adds the current user as viewer to a path, so that the response contains what the user may see. */
export function visible(path) {
  const me = whoami();
  return me ? `${path}${path.includes("?") ? "&" : "?"}viewer=${me.id}` : path;
}

/** Path of the page of a list that a cursor leads to; without one, `path`, which has a query. */
export const paged = (path, cursor) => (cursor ? `${path}&cursor=${cursor}` : path);

/** Path of a user. */
export const user = (id) => `/v1/users/${encodeURIComponent(id)}`;
