// Web page with the "For You" feed and the home timeline of a user, and live updates.
//
// The types in api.ts are generated from the OpenAPI document of roost: see docs/clients.md. The application key stays
// in this process; browsers get HTML and events. A product would take the user from its own log-in.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Post = components["schemas"]["PostView"];
type Reason = components["schemas"]["ReasonView"];

const { ROOST_URL = "http://127.0.0.1:8998", ROOST_KEY, ROOST_USER: user = "0", PORT = "8080" } = process.env;
const headers = ROOST_KEY ? { Authorization: `Bearer ${ROOST_KEY}` } : {};
const roost = createClient<paths>({ baseUrl: ROOST_URL, headers });

const escape = (text: string) => text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
const name = ({ name, handle }: { name: string; handle: string }) => name || handle;

function why({ kind, users, others, tag, language }: Reason): string {
  const names = (users ?? []).map(name).concat(others ? [`${others} more`] : []);
  const words: Record<string, string> = {
    followed: "you follow the author",
    at_home: "boosted, or with a hashtag that you follow",
    liked_by_followed: `liked by ${names.join(", ")}`,
    hashtag: `popular in #${tag}`,
    group: "popular among people with your interests",
    popular_in_language: `popular in the language ${language}`,
  };
  return words[kind] ?? kind.replaceAll("_", " ");
}

function item(entry: Post, reasons: Reason[] = []): string {
  const post = entry.boost_of ?? entry;
  const by = `${name(post.author)}${entry === post ? "" : `, boosted by ${name(entry.author)}`}`;
  const text = post.warning
    ? `<details><summary>${escape(post.warning)}</summary>${escape(post.text)}</details>`
    : `<p>${escape(post.text)}</p>`;
  return `<li><b>${escape(by)}</b>${text}<small>${escape(reasons.map(why).join("; "))}</small></li>`;
}

function checked<T>({ data, error }: { data?: T; error?: components["schemas"]["ErrorBody"] }): NonNullable<T> {
  if (data == null) throw new Error(error?.message ?? "the response has no body");
  return data;
}

async function forYou(): Promise<string> {
  const params = { path: { user, name: "for-you" }, query: { limit: 20 } };
  const { items } = checked(await roost.GET("/v1/users/{user}/feeds/{name}", { params }));
  return items.map(({ post, reasons }) => item(post, reasons)).join("");
}

async function home(): Promise<string> {
  const params = { path: { user }, query: { limit: 20 } };
  const { items } = checked(await roost.GET("/v1/users/{user}/timeline", { params }));
  return items.map((post) => item(post)).join("");
}

// Every event makes the browser read the timeline again, one read after another, and so does a new connection.
const page = async () => `<!doctype html><meta charset="utf-8"><title>roost</title>
<h1>For You</h1><ul>${await forYou()}</ul><h1>Home</h1><ul id="home">${await home()}</ul>
<script>
const list = document.getElementById("home"), events = new EventSource("/events");
let last = Promise.resolve();
const read = () => last = last.then(() => fetch("/home")).then((it) => it.ok ? it.text() : Promise.reject(it.status))
  .then((html) => { list.innerHTML = html; }).catch(console.error);
for (const kind of ["open", "post", "edit", "delete", "resync"]) events.addEventListener(kind, read);
</script>`;

async function live(answer: ServerResponse): Promise<void> {
  const closed = new AbortController();
  answer.on("close", () => closed.abort());
  // A failure now closes the connection: after another status, browsers would not connect again.
  answer.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  const options = { params: { path: { user } }, parseAs: "stream", signal: closed.signal } as const;
  await pipeline(checked(await roost.GET("/v1/users/{user}/events", options)), answer);
}

const html = async (answer: ServerResponse, body: Promise<string>) =>
  answer.setHeader("Content-Type", "text/html; charset=utf-8").end(await body);

const server = createServer((request, answer) => {
  const routes: Record<string, () => Promise<unknown>> = {
    "/": () => html(answer, page()),
    "/home": () => html(answer, home()),
    "/events": () => live(answer),
  };
  const missing = async () => answer.writeHead(404).end();
  (routes[request.url ?? ""] ?? missing)().catch((error: Error) => {
    if (answer.headersSent) answer.destroy();
    else answer.writeHead(502, { "Content-Type": "text/plain" }).end(error.message);
  });
});
server.listen(Number(PORT), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
