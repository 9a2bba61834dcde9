// Viewer for stories of one author after the other, over the whole page. Viewing marks them as seen; a story that
// expires is removed while it is viewed.

import { ask, get, user } from "./api.js";
import { calm, h, setChildren } from "./dom.js";
import { icon } from "./icons.js";
import { face, hue, named } from "./people.js";
import { say, withBusy } from "./say.js";
import { whoami } from "./session.js";
import { rich } from "./text.js";
import { when } from "./time.js";
import { life } from "./tray.js";

/** Opens the viewer at the first unseen story of `author`. */
export function view(storyList, author) {
  const { own, others } = storyList.authors();
  const first = own?.author.id === author ? own : others.find((entry) => entry.author.id === author);
  if (!first) return;
  const order = first === own ? [own] : [first, ...others.filter((entry) => entry !== first)];
  const queue = order.flatMap((entry) => entry.stories);
  const unseen = first.stories.findIndex((story) => !story.seen);
  new Viewer(storyList, queue, first === own || unseen < 0 ? 0 : unseen).open();
}

class Viewer {
  constructor(storyList, queue, at) {
    this.storyList = storyList;
    this.queue = queue;
    this.at = at;
    this.leave = new AbortController();
    this.page = new AbortController();
    const button = (name, label, step) => h(`button.turn.${name}`, { type: "button", "aria-label": label, onclick: () => this.go(step) }, icon(name));
    this.prev = button("left", "Previous story", -1);
    this.next = button("right", "Next story", 1);
    this.stage = h("div.stage");
    this.dialog = h("dialog.viewer", { "aria-label": "Stories" },
      h("button.turn.close", { type: "button", "aria-label": "Close", onclick: () => this.dialog.close() }, icon("close")),
      this.prev, this.stage, this.next);
    this.dialog.addEventListener("keydown", ({ key }) => {
      if (key === "ArrowLeft") this.go(-1);
      if (key === "ArrowRight") this.go(1);
    });
    this.dialog.addEventListener("click", (event) => { if (event.target === this.dialog) this.dialog.close(); });
    this.dialog.addEventListener("close", () => {
      this.leave.abort();
      this.page.abort();
      this.dialog.remove();
    });
    addEventListener("hashchange", () => this.dialog.close(), { signal: this.leave.signal });
    storyList.addEventListener("over", ({ detail }) => this.over(detail), { signal: this.leave.signal });
  }

  open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.show();
    this.next.focus();
  }

  go(step) {
    const at = this.at + step;
    if (at < 0) return;
    if (at >= this.queue.length) return this.dialog.close();
    this.at = at;
    this.show();
  }

  /** Removes an ended story. If it is in view, it fades before the next one appears. */
  async over(id) {
    const place = this.queue.findIndex((story) => story.id === id);
    if (place < 0) return;
    const inView = place === this.at;
    if (inView) {
      say("This story has expired.");
      const card = this.stage.firstElementChild;
      card.classList.add("gone");
      if (!calm.matches) await card.animate([{ opacity: 1, filter: "blur(0)" }, { opacity: 0, filter: "blur(12px)" }], { duration: 600, fill: "forwards" }).finished;
    }
    const now = this.queue.findIndex((story) => story.id === id);
    if (now >= 0) this.queue.splice(now, 1);
    if (now < this.at) this.at -= 1;
    if (this.leave.signal.aborted) return;
    if (this.queue.length === 0 || (inView && this.at >= this.queue.length)) return this.dialog.close();
    this.show();
  }

  show() {
    const story = this.queue[this.at];
    this.page.abort();
    this.page = new AbortController();
    const { signal } = this.page;
    const mine = story.author.id === whoami().id;
    const same = this.queue.filter((one) => one.author.id === story.author.id);
    const ticks = h("div.ticks", { "aria-hidden": "true" }, ...same.map((one) => h("i", { class: one === story ? "now" : one.seen ? "past" : "" })));
    const below = h("footer");
    setChildren(this.stage, h("article.story", { "--hue": hue(story.author), "aria-label": `Story of ${story.author.name || story.author.handle}, ${same.indexOf(story) + 1} of ${same.length}` },
      ticks,
      h("header", null, face(story.author, "m"), h("div", null, named(story.author), when(story.created_at))),
      h("p.text", { dir: "auto", "data-long": story.text.length > 140 }, ...rich(story.text)),
      h("div.foot", null, life(story, signal), below)));
    this.prev.disabled = this.at === 0;
    if (mine) this.#own(story, below, signal);
    else this.#view(story);
  }

  async #view(story) {
    if (story.seen) return;
    await ask("PUT", `${user(whoami().id)}/viewed_stories/${story.id}`).catch(() => null);
    this.storyList.saw(story.id);
  }

  /** Shows the viewers of the user's own story, and a button to delete it. */
  async #own(story, below, signal) {
    const button = h("button.pill.quiet", { type: "button", onclick: () => withBusy(button, async () => {
      await ask("DELETE", `${user(whoami().id)}/stories/${story.id}`);
      this.storyList.drop(story.id);
    }) }, "Delete story");
    const page = await get(`${user(whoami().id)}/stories/${story.id}/views?limit=100`, signal).catch(() => null);
    if (!page || signal.aborted) return;
    const names = page.items.map((person) => person.name || person.handle);
    const some = `Seen by ${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}`;
    setChildren(below, h("span.seenby", null, icon("eye"), h("span", null, names.length ? some : "No views yet")), button);
  }
}
