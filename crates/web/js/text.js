// Texts of users: their length, and their display with links, mentions and hashtags. The server has the same algorithm
// (`crates/feed/src/token.rs`), and both are tested with the same cases.

import { h } from "./dom.js";

/** Maximum length of a post or story, in characters and in bytes. */
export const CHARS_MAX = 500;
const BYTES_MAX = 8000;
/** Number of characters that a URL counts as. */
const URL_CHARS = 23;
const TAG_BYTES_MAX = 200;
const DOMAIN_BYTES_MAX = 259;

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const encoder = new TextEncoder();
const bytes = (text) => encoder.encode(text).length;

/** Number of user-perceived characters (grapheme clusters). */
function perceived(text) {
  let count = 0;
  for (const _ of graphemes.segment(text)) count += 1;
  return count;
}

/** Length of a text in characters. A URL counts as a fixed number, and the domain of a mention does not count. */
export function length(text) {
  let [count, counted] = [0, 0];
  for (const { kind, start, end, name } of tokens(text)) {
    if (kind !== "url" && kind !== "address") continue;
    count += perceived(text.slice(counted, start)) + (kind === "url" ? URL_CHARS : 1 + name.length);
    counted = end;
  }
  return count + perceived(text.slice(counted));
}

/** Number of characters left; negative if the text is too long. */
export function room(text) {
  const rest = CHARS_MAX - length(text.trim());
  return bytes(text) > BYTES_MAX ? Math.min(rest, -1) : rest;
}

/** Initial text of a reply to a user. */
export const replyTo = (handle) => `@${handle} `;

const WORD = /[\p{Alpha}\p{N}_]/u;
/** Letters of scripts that are written without spaces between words. */
const UNSPACED = /[\u0e00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u2e80-\u2fdf\u3005-\u3007\u3021-\u31ff\u3400-\ua4cf\ua960-\ua97f\ua9e0-\ua9ff\uaa60-\uaadf\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\u{1b000}-\u{1b16f}\u{20000}-\u{3ffff}]/u;
const ACCENT = /[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/u;
/** Characters that always end a URL. */
const GAP = /[\s\u0085\p{Cc}<>"`{}|\\^\uff02\u00ad\u061c\u180e\u200b\u200e\u200f\ufeff\u202a-\u202e\u2060-\u206f\ufff9-\ufffd]/u;
/** Characters that end a URL outside of brackets. */
const STOP = /[\u2025\u2026\u203c\u2047-\u2049\u3001\u3002\uff61\uff64\uff01\uff0c\uff0e\uff1a\uff1b\uff1f\ufe10-\ufe19\ufe50-\ufe57\u0589\u060c\u061b\u061f\u06d4\u0964\u0965\u104a\u104b\u1362\u17d4\u17d5\u1802\u1803]/u;
/** Opening brackets and quotation marks, with their closing ones. */
const PAIRS = new Map(
  "() [] \u00ab\u00bb \u2018\u2019 \u201a\u2018\u2019 \u201c\u201d \u201e\u201c\u201d \u2039\u203a \u2045\u2046 \u2329\u232a \u275b\u275c \u275d\u275e \u2768\u2769 \u27e6\u27e7 \u27e8\u27e9 \u27ea\u27eb \u2985\u2986 \u2e22\u2e23 \u2e28\u2e29 \u3008\u3009 \u300a\u300b \u300c\u300d \u300e\u300f \u3010\u3011 \u3014\u3015 \u3016\u3017 \u3018\u3019 \u301a\u301b \u301d\u301e\u301f \ufd3e\ufd3f \ufe59\ufe5a \uff08\uff09 \uff1c\uff1e \uff3b\uff3d \uff5b\uff5d \uff5f\uff60 \uff62\uff63"
    .split(" ").map(([open, ...close]) => [open, close]),
);
const BRACKETS = new Set([...PAIRS.keys(), ...[...PAIRS.values()].flat()]);
/** Characters that are invisible on their own. */
const INVISIBLE = /[\u00ad\u061c\u180e\u200b-\u200f\ufeff\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f]*/y;
/** A hashtag with its sign, cut after 200 characters. */
const TAG = /[#\uff03]([\p{Alpha}\p{N}_][\p{Alpha}\p{N}\p{Gr_Ext}\p{Mc}\p{EMod}_\u00b7\u30fb\u200c\u200d]{0,200})/uy;
/** Test of a hashtag's characters: a letter, or a joining character inside. */
const IS_TAG = /\p{Alpha}|.[_\u00b7\u30fb\u200c\u200d]./u;
const HANDLE = /@([A-Za-z0-9_]{1,31})/y;
const DOMAIN = /[A-Za-z0-9.:-]{1,260}/y;
const SCHEME = /https?:\/\/(?=[\p{Alpha}\p{N}]|\[[0-9a-f:])/iuy;

const at = (text, index) => (index < text.length ? String.fromCodePoint(text.codePointAt(index)) : "");

function matched(regex, text, index) {
  regex.lastIndex = index;
  return regex.exec(text);
}

/** Whether the text continues the name before `index`, which then is a longer name, an address, a host or a package. */
function continues(text, index) {
  // Invisible characters may be copied along with a mention.
  const seen = index + matched(INVISIBLE, text, index)[0].length;
  const c = at(text, seen);
  const next = at(text, seen + c.length);
  if (c === "") return false;
  if ("@\uff20".includes(c)) return true;
  if (seen > index) return false;
  if ("/-".includes(c)) return true;
  if (c === ".") return WORD.test(next);
  if (c === ":") return /[A-Za-z0-9]/.test(next);
  return (WORD.test(c) && !UNSPACED.test(c)) || ACCENT.test(c);
}

function mention(text, start, before) {
  if (before && (WORD.test(before) || ACCENT.test(before) || "@/=".includes(before))) return null;
  const name = matched(HANDLE, text, start)?.[1];
  if (!name || name.length > 30) return null;
  const end = start + 1 + name.length;
  if (text[end] !== "@") return continues(text, end) ? null : { kind: "mention", start, end, name };
  const domain = domainOf(matched(DOMAIN, text, end + 1)?.[0] ?? "");
  const whole = end + 1 + domain.length;
  return domain && !continues(text, whole) ? { kind: "address", start, end: whole, name, domain } : null;
}

/** Domain and port at the start of a text. */
function domainOf(text) {
  if (text.length > DOMAIN_BYTES_MAX) return "";
  const [domain] = /^[^:]*(:\d+)?/.exec(text);
  const whole = domain.replace(/[.-]+$/, "");
  return /^[.:-]/.test(whole) ? "" : whole;
}

function hashtag(text, start, before) {
  if (before && (WORD.test(before) || "#\uff03/&=".includes(before))) return null;
  const run = matched(TAG, text, start)?.[1];
  if (!run || bytes(run) > TAG_BYTES_MAX) return null;
  const name = run.replace(/[\u00b7\u30fb\u200c\u200d]+$/, "");
  const is = IS_TAG.test(name) && bytes(name.toLowerCase()) <= TAG_BYTES_MAX;
  return is ? { kind: "tag", start, end: start + 1 + name.length, name: name.toLowerCase() } : null;
}

/** Finds a URL, without the punctuation of the sentence around it. `closed` returns the end of a bracket's pair. */
function url(text, start, before, closed) {
  if (before && WORD.test(before) && !UNSPACED.test(before)) return null;
  const scheme = matched(SCHEME, text, start);
  if (!scheme) return null;
  let index = start + scheme[0].length;
  let end = 0;
  while (index < text.length) {
    const c = at(text, index);
    if (GAP.test(c) || STOP.test(c)) break;
    if (BRACKETS.has(c)) {
      const close = closed(index);
      // An unpaired bracket belongs to the surrounding text.
      if (!close) break;
      [index, end] = [close, close];
      continue;
    }
    index += c.length;
    if (!".,;:!?'*_~".includes(c)) end = index;
  }
  return end ? { kind: "url", start, end } : null;
}

/** Returns a function that finds the end of a bracket's pair. Brackets up to the next gap are paired once. */
function pairing(text) {
  let known = 0;
  let ends = new Map();
  return (index) => {
    if (index < known) return ends.get(index);
    ends = new Map();
    const open = [];
    known = index;
    while (known < text.length && !GAP.test(at(text, known))) {
      const c = at(text, known);
      if (open.length > 0 && PAIRS.get(open.at(-1).c).includes(c)) ends.set(open.pop().index, known + c.length);
      else if (PAIRS.has(c)) open.push({ c, index: known });
      known += c.length;
    }
    return ends.get(index);
  };
}

/** Finds the URLs, mentions, addresses of users of other servers, and hashtags of a text, in order. */
export function tokens(text) {
  const found = [];
  const closed = pairing(text);
  const begins = /[@#\uff03hH]/g;
  for (let match = begins.exec(text); match; match = begins.exec(text)) {
    const start = match.index;
    const before = [...text.slice(Math.max(0, start - 2), start)].at(-1) ?? "";
    const find = { "@": mention, "h": url, "H": url }[match[0]] ?? hashtag;
    const token = find(text, start, before, closed);
    if (!token) continue;
    found.push(token);
    begins.lastIndex = token.end;
  }
  return found;
}

/** Renders a text as nodes. URLs, handles of `mentions` and, if `tags`, hashtags become links. */
export function rich(text, mentions = [], tags = false) {
  const known = new Set(mentions.map((user) => user.handle.toLowerCase()));
  const nodes = [];
  let shown = 0;
  for (const { kind, start, end, name } of tokens(text)) {
    const written = text.slice(start, end);
    let node = null;
    if (kind === "url") node = link(written);
    else if (kind === "tag") node = tags && h("a", { href: tagged(name), rel: "tag" }, written);
    else if (kind === "mention") node = known.has(name.toLowerCase()) && profile(name, written);
    if (!node) continue;
    nodes.push(text.slice(shown, start), node);
    shown = end;
  }
  nodes.push(text.slice(shown));
  return nodes.filter((node) => node !== "");
}

function link(address) {
  let parsed;
  try {
    parsed = new URL(address);
  } catch {
    return null;
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") return null;
  return h("a", { href: parsed.href, rel: "noopener noreferrer nofollow ugc", target: "_blank" }, address);
}

/** Address of the page of a hashtag. */
export const tagged = (tag) => `#/tags/${encodeURIComponent(tag.toLowerCase())}`;

const profile = (handle, shown) => h("a", { href: `#/@${handle.toLowerCase()}` }, shown);
