// One post, and its actions.

import { ask } from "./api.js";
import { composer } from "./compose.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { face, remember, named, profile } from "./people.js";
import { carry, say, toast } from "./say.js";
import { whoami } from "./session.js";
import { replyTo, rich } from "./text.js";
import { when } from "./time.js";

/**
 * A post as an article. `gone` is called after its author deleted it; `replied` is called with the reply.
 */
export function article(post, { gone, replied } = {}) {
  const { author } = post;
  remember(author);
  const me = whoami();
  const actions = h("div.actions");
  const node = h("article.post", { "data-id": post.id, "aria-label": `Post by ${author.name || author.handle}` },
    h("a", { href: profile(author.handle), tabindex: -1, "aria-hidden": "true" }, face(author)),
    h("div.body", null,
      h("header", null, named(author), when(post.created_at), h("span.edited")),
      h("p.text", { dir: "auto" }),
      actions));
  rewrite(node, post);
  if (me) actions.append(replyButton(post, node, replied));
  if (me?.id === author.id) actions.append(deleteButton(post, node, gone));
  return node;
}

/** Shows the text of a post as it is now. */
export function rewrite(node, post) {
  node.querySelector(".text").replaceChildren(...rich(post.text, post.mentions));
  node.querySelector(".edited").textContent = post.edited_at ? "edited" : "";
}

function action(name, label, onclick) {
  return h("button.action", { type: "button", onclick }, icon(name), h("span", null, label));
}

function replyButton(post, node, replied) {
  const button = action("reply", "Reply", () => {
    const open = node.querySelector(".composer");
    if (open) return open.begin();
    const box = composer({
      label: `Reply to @${post.author.handle}`,
      begin: replyTo(post.author.handle),
      place: `reply ${post.id}`,
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

/** Asks for confirmation before it deletes: deletion cannot be undone. */
function deleteButton(post, node, gone) {
  const button = action("delete", "Delete post", () => {
    const sure = h("button.action.bad", { type: "button", onclick: () => carry(sure, remove) }, "Delete");
    const keep = h("button.action", { type: "button", onclick: back }, "Cancel");
    const question = h("span.sure", { role: "group", "aria-label": "Delete this post?" }, h("span", null, "Delete this post?"), sure, keep);
    button.replaceWith(question);
    sure.focus();
    function back() {
      question.replaceWith(button);
      button.focus();
    }
  });
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
