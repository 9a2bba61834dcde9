// Who uses this window. The key stays in the session: it goes with the tab. Who one is stays too,
// and the last one is offered to new tabs.

const KEY = "roost.key";
const ME = "roost.me";

/** The application's key, if the server asked for one and it was given. */
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

/** The person in whose name this window acts, or null. */
export function whoami() {
  return me;
}

/** Heard when that changes. */
export const changes = new EventTarget();

/** Acts in the name of a person from now on; of nobody for null. */
export function become(person) {
  me = person && { id: person.id, handle: person.handle, name: person.name };
  for (const storage of [sessionStorage, localStorage]) {
    if (me) storage.setItem(ME, JSON.stringify(me));
    else storage.removeItem(ME);
  }
  changes.dispatchEvent(new Event("change"));
}
