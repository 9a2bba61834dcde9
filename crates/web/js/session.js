// User of this window. With a session it is the user logged in in this browser; the browser keeps the session's secret,
// which scripts cannot read. In open mode and with an application key it is any chosen user: user and key are stored
// until the tab is closed, and the last user is the default of new tabs.

const KEY = "roost.key";
const ME = "roost.me";
/** Storage key of the address to show after a login. */
const NEXT = "roost.next";
/** Storage key that changes at a logout, which other windows of the browser observe. */
const OUT = "roost.out";

/** Application key, if the server requires one and the user has entered it. */
export const key = {
  read: () => sessionStorage.getItem(KEY),
  write: (text) => sessionStorage.setItem(KEY, text),
  forget: () => sessionStorage.removeItem(KEY),
};

let me = parse(sessionStorage.getItem(ME) ?? localStorage.getItem(ME));
/** Session of this browser as described by the server, or null. */
let session = null;
/** Description of the server, or null before it is loaded. */
let server = null;

function parse(text) {
  try {
    const { id, handle, name } = JSON.parse(text) ?? {};
    return typeof id === "string" && typeof handle === "string" ? { id, handle, name } : null;
  } catch {
    return null;
  }
}

/** Whether this window has the session of a logged-in user. */
export const isSession = () => session !== null;

/** Current user of this window, or null. */
export function whoami() {
  return isVisitor() ? null : me;
}

/** Default visibility of the user's posts. */
export const usualVisibility = () => session?.user.visibility ?? "public";

/** Headers that authorize requests. */
export function credentials() {
  if (session) return { "Roost-Session": session.form_token };
  const secret = key.read();
  return secret ? { Authorization: `Bearer ${secret}` } : {};
}

/** Stores the description of the server and of the session. */
export function begin(described) {
  server = described;
  session = described.user ? described : null;
  if (session) become(session.user);
}

/** Description of the server, or null if it is not loaded. */
export const described = () => server;

/** Whether a login or a key is required before anything can be shown. */
export const isVisitor = () => server !== null && !server.open && !session && !key.read();

/** Dispatches an event when the current user changes. */
export const changes = new EventTarget();

/** Sets the current user; null for none. */
export function become(person) {
  me = person && { id: person.id, handle: person.handle, name: person.name };
  for (const storage of session ? [] : [sessionStorage, localStorage]) {
    if (me) storage.setItem(ME, JSON.stringify(me));
    else storage.removeItem(ME);
  }
  changes.dispatchEvent(new Event("change"));
}

/** Address to return to after a login, which leaves the page. */
export const next = {
  keep: (address) => sessionStorage.setItem(NEXT, address),
  take: () => {
    const address = sessionStorage.getItem(NEXT);
    sessionStorage.removeItem(NEXT);
    return address;
  },
};

/** Removes the user's data from the screen, and restarts with the current session, if any. */
export function restart() {
  document.body.hidden = true;
  for (const part of ["main", "aside", "me", "toasts"]) document.getElementById(part).replaceChildren();
  location.reload();
}

/** Ends the session in all windows, and deletes the data stored for its user. */
export async function logOut() {
  const body = new URLSearchParams({ form_token: session.form_token });
  // The redirect to the login page is not followed.
  await fetch("/auth/log-out", { method: "POST", body, redirect: "manual", cache: "no-store" });
  sessionStorage.clear();
  localStorage.setItem(OUT, String(Date.now()));
  history.replaceState(null, "", "/");
  restart();
}

addEventListener("storage", ({ key: name }) => { if (session && name === OUT) restart(); });
// The page that the browser keeps for Back must not contain data of the session.
addEventListener("pagehide", () => { if (session) document.body.hidden = true; });
addEventListener("pageshow", ({ persisted }) => { if (session && persisted) restart(); });
