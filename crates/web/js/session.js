// The current user and key of this window, stored until the tab is closed. The last user is also the default
// of new tabs.

const KEY = "roost.key";
const ME = "roost.me";

/** The application key, if the server needs one and it was entered. */
export const key = {
  read: () => sessionStorage.getItem(KEY),
  write: (text) => sessionStorage.setItem(KEY, text),
  forget: () => sessionStorage.removeItem(KEY),
};

let me = parse(sessionStorage.getItem(ME) ?? localStorage.getItem(ME));

function parse(text) {
  try {
    const { id, handle, name } = JSON.parse(text) ?? {};
    return typeof id === "string" && typeof handle === "string" ? { id, handle, name } : null;
  } catch {
    return null;
  }
}

/** The current user of this window, or null. */
export function whoami() {
  return me;
}

/** Dispatches an event when the current user changes. */
export const changes = new EventTarget();

/** Sets the current user, or none for null. */
export function become(person) {
  me = person && { id: person.id, handle: person.handle, name: person.name };
  for (const storage of [sessionStorage, localStorage]) {
    if (me) storage.setItem(ME, JSON.stringify(me));
    else storage.removeItem(ME);
  }
  changes.dispatchEvent(new Event("change"));
}
