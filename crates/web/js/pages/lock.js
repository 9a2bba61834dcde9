// The key: asked for once if the server wants one, kept as long as the tab.

import { send, server } from "../api.js";
import { h, put } from "../dom.js";
import { icon } from "../icons.js";
import { carry } from "../say.js";
import { key } from "../session.js";

export async function render({ main, about }) {
  const field = h("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "key-help key-wrong" });
  const wrong = h("p.wrong", { id: "key-wrong", role: "alert" });
  const open = h("button.pill.main", { type: "submit" }, "Open");
  put(main, h("div.gate", null, icon("key"),
    h("h1", null, "This server has a key"),
    h("p", { id: "key-help" }, "It was printed when the server started for the first time. It is kept in this tab and goes with it."),
    h("form", { onsubmit: (event) => { event.preventDefault(); carry(open, unlock); } },
      h("label", { for: "key" }, "Application key"), h("div.row", null, field, open), wrong)));
  field.focus();

  async function unlock() {
    key.write(field.value.trim());
    const answer = await send("/v1/users?limit=1");
    if (answer.status === 401) {
      wrong.textContent = "That is not the key of this server.";
      field.select();
      return;
    }
    server.dispatchEvent(new Event("unlocked"));
    location.replace(`#/${about || "home"}`);
  }
}
