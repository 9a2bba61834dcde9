// Texts of users: counted as the server counts them, and shown with their links, mentions and hashtags.

import { h } from "./dom.js";

/** Maximum length of a post or story, in characters and in bytes. */
export const CHARS_MAX = 500;
const BYTES_MAX = 8000;

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const encoder = new TextEncoder();

/** Characters as users perceive them (grapheme clusters). */
export function length(text) {
  let count = 0;
  for (const _ of graphemes.segment(text)) count += 1;
  return count;
}

/** How many characters are left; negative if the text is too long. */
export function room(text) {
  const rest = CHARS_MAX - length(text.trim());
  return encoder.encode(text).length > BYTES_MAX ? Math.min(rest, -1) : rest;
}

/** The beginning of a reply to a user. */
export const replyTo = (handle) => `@${handle} `;

const PARTS = /(https?:\/\/[^\s<>"]+)|@([A-Za-z0-9_]{1,30})(?![A-Za-z0-9_])|(?<![\p{Alpha}\p{N}_#\uff03/&=])[#\uff03]([\p{Alpha}\p{N}_][\p{Alpha}\p{N}\p{Gr_Ext}\p{Mc}\p{EMod}_\u00b7\u30fb\u200c\u200d]*(?<![\u00b7\u30fb\u200c\u200d]))/gu;

/** What is a hashtag, beside its length, of what looks like one: it has a letter, or something within that joins others. */
const IS_TAG = /\p{Alpha}|.[_\u00b7\u30fb\u200c\u200d]./u;
const TAG_BYTES_MAX = 200;
const isTag = (tag) => IS_TAG.test(tag) && encoder.encode(tag.toLowerCase()).length <= TAG_BYTES_MAX;

/** A text as nodes. Handles of `mentions` become links to profiles, addresses and, if wanted, hashtags become links. */
export function rich(text, mentions = [], tags = false) {
  const known = new Set(mentions.map((user) => user.handle.toLowerCase()));
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(PARTS)) {
    const [whole, address, handle, tag] = match;
    const shown = address ? trimmed(address) : whole;
    let node = null;
    if (address) node = link(shown);
    else if (tag) node = tags && isTag(tag) && h("a", { href: tagged(tag), rel: "tag" }, shown);
    else node = known.has(handle.toLowerCase()) && mention(handle, shown);
    if (!node) continue;
    nodes.push(text.slice(end, match.index), node);
    end = match.index + shown.length;
  }
  nodes.push(text.slice(end));
  return nodes.filter((node) => node !== "");
}

/** An address without the punctuation of the sentence around it. */
function trimmed(address) {
  let end = address.replace(/[.,:;!?'\u2019\u201d\u2026]+$/, "");
  while (end.endsWith(")") && end.split("(").length < end.split(")").length) end = end.slice(0, -1);
  return end;
}

function link(address) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  return h("a", { href: url.href, rel: "noopener noreferrer nofollow ugc", target: "_blank" }, address);
}

/** The page of a hashtag. */
export const tagged = (tag) => `#/tags/${encodeURIComponent(tag.toLowerCase())}`;

const mention = (handle, shown) => h("a", { href: `#/@${handle.toLowerCase()}` }, shown);
