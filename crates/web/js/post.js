// One post, and its actions.

import { ask } from "./api.js";
import { audience, seenBy } from "./audience.js";
import { composer } from "./compose.js";
import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { face, remember, named, profile } from "./people.js";
import { reactionButtons } from "./reactions.js";
import { say, toast } from "./say.js";
import { whoami } from "./session.js";
import { sure } from "./sure.js";
import { replyTo, rich } from "./text.js";
import { when } from "./time.js";

/** Number of texts shown so far, for their names. */
let texts = 0;

/**
 * A post as an article. `gone` is called after its author deleted it; `replied` is called with the reply.
 */
export function article(post, { gone, replied } = {}) {
  if (post.boost_of) return boosted(post, { gone, replied });
  const { author } = post;
  remember(author);
  const me = whoami();
  const actions = h("div.actions");
  const node = h("article.post", { "data-id": post.id, "aria-label": `Post by ${author.name || author.handle}` },
    h("a", { href: profile(author.handle), tabindex: -1, "aria-hidden": "true" }, face(author)),
    h("div.body", null,
      h("header", null, named(author), h("a.when", { href: thread(post.id) }, when(post.created_at)), h("span.edited"), seenBy(post)),
      h("div.said"),
      actions));
  rewrite(node, post);
  if (me) actions.append(replyButton(post, node, replied), ...reactionButtons(post));
  if (me?.id === author.id) actions.append(deleteButton(post, gone));
  return node;
}

/** A boost as the article of what it shows, with the name of whoever boosted it. */
function boosted({ id, author, boost_of: post }, { gone, replied }) {
  remember(author);
  const node = article(post, { gone: () => gone?.(id), replied });
  node.dataset.id = id;
  node.setAttribute("aria-label", `${node.getAttribute("aria-label")}, boosted by ${author.name || author.handle}`);
  node.querySelector(".body").prepend(h("p.boosted", null, icon("boost"), named(author), " boosted"));
  return node;
}

/** The page of a post and its thread. */
export const thread = (id) => `#/post/${id}`;

/** Shows the text of a post as it is now. */
export function rewrite(node, { boost_of, ...other }) {
  const post = boost_of ?? other;
  const shown = node.querySelector(".said .text:not([hidden])") !== null;
  const text = h("p.text", { dir: "auto" }, ...rich(post.text, post.mentions, true));
  put(node.querySelector(".said"), post.warning ? warned(post, text, shown) : null, text);
  node.querySelector(".edited").textContent = post.edited_at ? "edited" : "";
}

/** The content warning of a post, and the button that shows its text. */
function warned(post, text, shown) {
  text.id = `text-${post.id}-${texts += 1}`;
  const button = h("button.pill", { type: "button", "aria-controls": text.id, onclick: () => show(text.hidden) });
  function show(on) {
    text.hidden = !on;
    button.setAttribute("aria-expanded", String(on));
    button.textContent = on ? "Show less" : "Show more";
  }
  show(shown);
  return h("p.warned", { dir: "auto" }, icon("warning"), h("span", null, post.warning), button);
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
      options: audience(post),
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

/** Asks before it deletes: deletion cannot be undone. */
function deleteButton(post, gone) {
  const button = action("delete", "Delete post", () => sure(button, "Delete this post?", "Delete", remove), { plain: true });
  async function remove() {
    try {
      await ask("DELETE", `/v1/posts/${post.id}`);
      say("Post deleted.");
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      toast("This post was already deleted.");
    }
    gone?.(post.id);
  }
  return button;
}
