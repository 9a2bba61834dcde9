// Server-Sent Events with fetch, because EventSource cannot send the key. Resumes a stream after the last event read,
// with increasing delays.

import { ApiError, send, thrown } from "./api.js";
import { pause } from "./dom.js";

const WAIT_MS_MIN = 250;
const WAIT_MS_MAX = 5000;
/** Silence after which a stream counts as dead, in milliseconds. The server sends something every 15 s. */
const SILENCE_MS_MAX = 40_000;

/**
 * Reads `path` until `signal` aborts. Calls `received` with each event `{ event, data }`, and `state` with "open" (and
 * whether the stream was resumed) or "closed". Throws the error if the server refuses the stream permanently.
 */
export async function listen(path, { received, state, signal }) {
  let last = null;
  let waitMs = WAIT_MS_MIN;
  while (!signal.aborted) {
    const ended = new AbortController();
    const stop = () => ended.abort();
    signal.addEventListener("abort", stop);
    try {
      const headers = last === null ? {} : { "Last-Event-ID": last };
      const answer = await send(path, { headers, signal: ended.signal });
      if (!answer.ok) await thrown(answer);
      state("open", last !== null);
      waitMs = WAIT_MS_MIN;
      await read(answer.body, ended, (message) => {
        last = message.id ?? last;
        if (message.data !== null) received(message);
      });
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof ApiError && !problem.passes) throw problem;
    } finally {
      signal.removeEventListener("abort", stop);
      ended.abort();
    }
    if (signal.aborted) return;
    state("closed");
    await pause(waitMs * (0.75 + Math.random() / 2), signal);
    waitMs = Math.min(waitMs * 2, WAIT_MS_MAX);
  }
}

async function read(body, ended, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const silence = setTimeout(() => ended.abort(), SILENCE_MS_MAX);
    const { value, done } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    const messages = (rest + value).split("\n\n");
    rest = messages.pop();
    for (const message of messages) take(parse(message));
  }
}

/** Parses one event: its name, data (or null) and id (or null). */
export function parse(text) {
  const message = { event: "message", data: null, id: null };
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    const field = line.slice(0, colon);
    if (field === "data") message.data = message.data === null ? value : `${message.data}\n${value}`;
    else if (field === "event" || field === "id") message[field] = value;
  }
  return message;
}
