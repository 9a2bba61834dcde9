// Page for visitors of a server that requires a login. Developers can enter an application key instead, which is stored
// until the tab is closed.

import { send, server } from "../api.js";
import { h, setChildren } from "../dom.js";
import { withBusy } from "../say.js";
import { go } from "../route.js";
import { described, key, next } from "../session.js";

export async function render({ main, about }) {
  const { title = "roost", description = "" } = described()?.server ?? {};
  const mayJoin = described()?.sign_up ?? false;
  const door = (path, words, kind) => h(`a.pill${kind}`, { href: `${path}?pages=1`, onclick: () => next.keep(`#/${about}`) }, words);
  setChildren(main, h("div.gate", null,
    h("h1", null, title),
    h("p", null, description),
    h("div.row", null, door("/auth/log-in", "Log in", ".main"), mayJoin ? door("/auth/sign-up", "Sign up", "") : null),
    // A visitor who may sign up is probably not a developer.
    h("details", { open: !mayJoin }, h("summary", null, "Use an application key"), form(about))));
}

function form(about) {
  const field = h("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "key-help key-wrong" });
  const wrong = h("p.wrong", { id: "key-wrong", role: "alert" });
  const open = h("button.pill.main", { type: "submit" }, "Continue");
  return h("form", { onsubmit: (event) => { event.preventDefault(); withBusy(open, unlock); } },
    h("p.help", { id: "key-help" }, "An application key acts for all users of a product. The server wrote one to the file first-key in its data directory at its first start. This tab keeps the key until you close it."),
    h("label", { for: "key" }, "Application key"), h("div.row", null, field, open), wrong);

  async function unlock() {
    key.write(field.value.trim());
    const answer = await send("/v1/users?limit=1");
    if (answer.status === 401) {
      wrong.textContent = "This key is not valid on this server.";
      field.select();
      return;
    }
    server.dispatchEvent(new Event("unlocked"));
    go(`#/${about || "home"}`);
  }
}
