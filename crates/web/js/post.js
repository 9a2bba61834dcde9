// Display of a post, and its actions.

import { ask, user } from "./api.js";
import { audience, seenBy } from "./audience.js";
import { composer } from "./compose.js";
import { confirmFirst } from "./confirm.js";
import { h, setChildren } from "./dom.js";
import { versions } from "./history.js";
import { icon } from "./icons.js";
import { live } from "./live.js";
import { face, named, profile, remember } from "./people.js";
import { pictures } from "./pictures.js";
import { reactionButtons } from "./reactions.js";
import { say, toast, withBusy } from "./say.js";
import { whoami } from "./session.js";
import { replyTo, rich } from "./text.js";
import { when } from "./time.js";
import { withPictures } from "./uploads.js";

/** Number of hideable parts so far, for unique ids. */
let parts = 0;

/** Functions that remove the article of a deleted post, and the displayed content of articles. */
const removals = new WeakMap();
const contents = new WeakMap();

live.addEventListener("edit", ({ detail }) => edited(detail));
live.addEventListener("delete", ({ detail }) => deleted(detail.id));

/** Finds all articles of a post, including its boosts. */
const articles = (id) => document.querySelectorAll(`.post:is([data-id="${CSS.escape(id)}"], [data-post="${CSS.escape(id)}"])`);

/** Shows an edited post in all its articles. */
export const edited = (post) => articles(post.id).forEach((node) => rewrite(node, post));

/** Removes all articles of a deleted post or boost. */
export const deleted = (id) => articles(id).forEach((node) => removals.get(node)?.());

/**
 * Creates the article of a post. Calls `gone` when the post was deleted, here or elsewhere, and `replied` with a reply.
 */
export function article(post, { gone, replied } = {}) {
  if (post.boost_of) return boosted(post, { gone, replied });
  const { author } = post;
  remember(author);
  const me = whoami();
  const actions = h("div.actions");
  const node = h("article.post", { "data-id": post.id, "data-post": post.id, "aria-label": `Post by ${author.name || author.handle}` },
    h("a", { href: profile(author.handle), tabindex: -1, "aria-hidden": "true" }, face(author)),
    h("div.body", null,
      h("header", null, named(author), h("a.when", { href: thread(post.id) }, when(post.created_at)), h("span.edited"), seenBy(post)),
      h("div.said"),
      actions));
  rewrite(node, post);
  if (me) actions.append(replyButton(post, node, replied), ...reactionButtons(post));
  if (me?.id === author.id) actions.append(editButton(post.id, node), deleteButton(post));
  removals.set(node, gone);
  return node;
}

/** Creates the article of a boost: the boosted post with the name of the booster. */
function boosted({ id, author, boost_of: post }, { gone, replied }) {
  remember(author);
  const node = article(post, { gone, replied });
  node.dataset.id = id;
  node.setAttribute("aria-label", `${node.getAttribute("aria-label")}, boosted by ${author.name || author.handle}`);
  node.querySelector(".body").prepend(h("p.boosted", null, icon("boost"), named(author), " boosted"));
  return node;
}

/** Address of a post and its thread. */
export const thread = (id) => `#/post/${id}`;

/** Shows the content of a post, unless the article shows the same or a newer version. */
export function rewrite(node, { boost_of, ...other }) {
  const post = boost_of ?? other;
  const content = { post, at: post.edited_at ?? "", text: JSON.stringify([post.text, post.warning, post.sensitive, post.edited_at, post.mentions, post.media]) };
  const before = contents.get(node);
  if (before && (content.at < before.at || content.text === before.text)) return;
  contents.set(node, content);
  const shown = node.querySelector(".said > *") !== null && node.querySelector(".said > [hidden]") === null;
  const text = post.text ? h("p.text", { dir: "auto" }, ...rich(post.text, post.mentions, true)) : null;
  const below = pictures(post);
  const said = post.warning ? [warned(post.warning, [text, below], shown), text, below]
    : post.sensitive && below ? [text, warned("Sensitive pictures", [below], shown), below]
      : [text, below];
  setChildren(node.querySelector(".said"), said);
  if (post.edited_at) setChildren(node.querySelector(".edited"), history(post));
}

/** Creates the button that shows the edit history. */
function history(post) {
  const button = h("button", { type: "button", title: "Show the edit history", onclick: () => withBusy(button, () => versions(post)) }, "edited");
  return button;
}

/** Creates a content warning with a button that shows or hides the parts `about`, of which null ones are skipped. */
function warned(warning, about, shown) {
  const hidden = about.filter((part) => part !== null);
  hidden.forEach((part) => { part.id = `part-${parts += 1}`; });
  const ids = hidden.map((part) => part.id).join(" ");
  const button = h("button.pill", { type: "button", "aria-controls": ids, onclick: () => show(hidden[0].hidden) });
  function show(on) {
    hidden.forEach((part) => { part.hidden = !on; });
    button.setAttribute("aria-expanded", String(on));
    button.textContent = on ? "Show less" : "Show more";
  }
  show(shown);
  return h("p.warned", { dir: "auto" }, icon("warning"), h("span", null, warning), button);
}

function action(name, label, onclick, { plain = false } = {}) {
  const named = plain ? { "aria-label": label, title: label } : {};
  return h("button.action", { type: "button", onclick, ...named }, icon(name), plain ? null : h("span", null, label));
}

function replyButton(post, node, replied) {
  const button = action("reply", "Reply", () => {
    const open = node.querySelector(".composer");
    if (open) return open.begin();
    const box = composer({
      label: `Reply to @${post.author.handle}`,
      begin: replyTo(post.author.handle),
      place: `reply ${post.id}`,
      options: withPictures(audience(post)),
      extra: { in_reply_to_id: post.id },
      small: true,
      sent: (reply) => {
        box.remove();
        button.focus();
        replied?.(reply);
      },
      closed: () => {
        box.remove();
        button.focus();
      },
    });
    node.querySelector(".body").append(box);
    return box.begin();
  });
  return button;
}

/** Creates the button that opens a composer in place of the text. */
function editButton(id, node) {
  const button = action("draw", "Edit post", () => {
    const [said, actions] = [".said", ".actions"].map((part) => node.querySelector(part));
    const { post } = contents.get(node);
    const show = (on) => [said, actions].forEach((part) => { part.hidden = on; });
    function close() {
      box.remove();
      show(false);
      button.focus();
    }
    const box = composer({
      label: "Edit your post",
      begin: post.text,
      verb: "Save",
      method: "PATCH",
      path: `${user(post.author.id)}/posts/${id}`,
      place: `edit ${id}`,
      options: audience(post, true),
      said: "Post edited.",
      edits: true,
      small: true,
      sent: (changed) => {
        close();
        edited(changed);
      },
      closed: close,
    });
    show(true);
    said.after(box);
    box.begin();
  }, { plain: true });
  return button;
}

/** Creates the button that deletes a post after a confirmation. */
function deleteButton(post) {
  const button = action("delete", "Delete post", () => confirmFirst(button, "Delete this post?", "Delete", remove), { plain: true });
  async function remove() {
    try {
      await ask("DELETE", `${user(post.author.id)}/posts/${post.id}`);
      say("Post deleted.");
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      toast("This post was already deleted.");
    }
    deleted(post.id);
  }
  return button;
}
