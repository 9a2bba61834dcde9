// The application key: requested once if the server needs one, stored until the tab is closed.

import { send, server } from "../api.js";
import { h, put } from "../dom.js";
import { icon } from "../icons.js";
import { carry } from "../say.js";
import { go } from "../route.js";
import { key } from "../session.js";

export async function render({ main, about }) {
  const field = h("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "key-help key-wrong" });
  const wrong = h("p.wrong", { id: "key-wrong", role: "alert" });
  const open = h("button.pill.main", { type: "submit" }, "Continue");
  put(main, h("div.gate", null, icon("key"),
    h("h1", null, "Application key required"),
    h("p", { id: "key-help" }, "The first start of the server wrote one to the file first-key in its data directory. The key is kept until you close this tab."),
    h("form", { onsubmit: (event) => { event.preventDefault(); carry(open, unlock); } },
      h("label", { for: "key" }, "Application key"), h("div.row", null, field, open), wrong)));
  field.focus();

  async function unlock() {
    key.write(field.value.trim());
    const answer = await send("/v1/users?limit=1");
    if (answer.status === 401) {
      wrong.textContent = "This is not the key of this server.";
      field.select();
      return;
    }
    server.dispatchEvent(new Event("unlocked"));
    go(`#/${about || "home"}`);
  }
}
