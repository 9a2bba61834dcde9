// Event stream of this window for the current user. Pages listen to `live` for `post`, `mention`, `edit`, `delete`,
// `story`, `story_expired`, and for `fresh`, which means that events since the last load may be missing: the stream has
// just begun, or the server has sent `resync`.

import { ApiError, server, user } from "./api.js";
import { changes, whoami } from "./session.js";
import { listen } from "./sse.js";

export const live = new EventTarget();

/** State of the stream: "opening", "open", "lost", or "off" without a current user. */
export let state = "off";

let stop = null;

function enter(next) {
  if (state === next) return;
  state = next;
  live.dispatchEvent(new Event("state"));
}

async function run() {
  stop?.abort();
  stop = null;
  const me = whoami();
  // A hidden window closes its stream: browsers open at most six connections to a server for all tabs.
  if (!me || document.hidden) return enter("off");
  stop = new AbortController();
  const { signal } = stop;
  enter("opening");
  try {
    await listen(`${user(me.id)}/events`, {
      signal,
      received: ({ event, data }) => {
        const name = event === "resync" ? "fresh" : event;
        live.dispatchEvent(new CustomEvent(name, { detail: JSON.parse(data) }));
      },
      state: (what, resumed) => {
        enter(what === "open" ? "open" : "lost");
        if (what === "open" && !resumed) live.dispatchEvent(new Event("fresh"));
      },
    });
  } catch (problem) {
    if (signal.aborted) return;
    enter("off");
    if (problem instanceof ApiError && problem.status === 404) live.dispatchEvent(new Event("unknown"));
  }
}

/** Opens the stream, and reopens it when the user changes. */
export function start() {
  changes.addEventListener("change", run);
  server.addEventListener("unlocked", run);
  document.addEventListener("visibilitychange", run);
  run();
}
