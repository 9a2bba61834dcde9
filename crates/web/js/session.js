// For whom this window acts. With a session that is who is logged in in this browser; the browser keeps the secret of it,
// and scripts cannot read it. In open mode and with an application key it is any user: the user and the key are stored
// until the tab is closed, and the last user is also the default of new tabs.

const KEY = "roost.key";
const ME = "roost.me";
/** Where a log-in leads. */
const NEXT = "roost.next";
/** Changes when this browser logs out, which other windows of it notice. */
const OUT = "roost.out";

/** The application key, if the server needs one and it was entered. */
export const key = {
  read: () => sessionStorage.getItem(KEY),
  write: (text) => sessionStorage.setItem(KEY, text),
  forget: () => sessionStorage.removeItem(KEY),
};

let me = parse(sessionStorage.getItem(ME) ?? localStorage.getItem(ME));
/** The session of this browser, as the server describes it, or null. */
let session = null;
/** What the server says about itself. */
let server = null;

function parse(text) {
  try {
    const { id, handle, name } = JSON.parse(text) ?? {};
    return typeof id === "string" && typeof handle === "string" ? { id, handle, name } : null;
  } catch {
    return null;
  }
}

/** Whether somebody is logged in, and this window acts for nobody else. */
export const isSession = () => session !== null;

/** The current user of this window, or null. */
export function whoami() {
  return isVisitor() ? null : me;
}

/** The visibility of the user's posts unless another one is chosen. */
export const usualVisibility = () => session?.user.visibility ?? "public";

/** The headers with which requests are authorized. */
export function credentials() {
  if (session) return { "Roost-Session": session.form_token };
  const secret = key.read();
  return secret ? { Authorization: `Bearer ${secret}` } : {};
}

/** Takes what the server says about itself and its session with this browser. */
export function begin(described) {
  server = described;
  session = described.user ? described : null;
  if (session) become(session.user);
}

/** What the server says about itself, or null if it was not asked. */
export const described = () => server;

/** Whether somebody must log in, or enter a key, before anything is shown. */
export const isVisitor = () => server !== null && !server.open && !session && !key.read();

/** Dispatches an event when the current user changes. */
export const changes = new EventTarget();

/** Sets the current user, or none for null. */
export function become(person) {
  me = person && { id: person.id, handle: person.handle, name: person.name };
  for (const storage of session ? [] : [sessionStorage, localStorage]) {
    if (me) storage.setItem(ME, JSON.stringify(me));
    else storage.removeItem(ME);
  }
  changes.dispatchEvent(new Event("change"));
}

/** The address to return to after a log-in, which leads to another page. */
export const next = {
  keep: (address) => sessionStorage.setItem(NEXT, address),
  take: () => {
    const address = sessionStorage.getItem(NEXT);
    sessionStorage.removeItem(NEXT);
    return address;
  },
};

/** Removes from the screen what only the user may see, and begins again as whoever is logged in now, if anybody. */
export function restart() {
  document.body.hidden = true;
  for (const part of ["main", "aside", "me", "toasts"]) document.getElementById(part).replaceChildren();
  location.reload();
}

/** Ends the session here and in other windows, and forgets what was stored for its user. */
export async function logOut() {
  const body = new URLSearchParams({ form_token: session.form_token });
  // The response leads to the log-in page, which is not wanted here.
  await fetch("/auth/log-out", { method: "POST", body, redirect: "manual", cache: "no-store" });
  sessionStorage.clear();
  localStorage.setItem(OUT, String(Date.now()));
  history.replaceState(null, "", "/");
  restart();
}

addEventListener("storage", ({ key: name }) => { if (session && name === OUT) restart(); });
// Nothing of a session is in the page that the browser keeps for its button Back.
addEventListener("pagehide", () => { if (session) document.body.hidden = true; });
addEventListener("pageshow", ({ persisted }) => { if (session && persisted) restart(); });
