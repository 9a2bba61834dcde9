"""Web page with the "For You" feed and the home timeline of a user, and live updates.

The package roost_client is generated from the OpenAPI document of roost: see docs/clients.md. The application key stays
in this process; browsers get HTML and events. A product would take the user from its own log-in.
"""

import os
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import httpx
from roost_client import Client, models
from roost_client.api.timelines import list_home_posts, read_feed

USER, KEY = os.environ.get("ROOST_USER", "0"), os.environ.get("ROOST_KEY")
HEADERS = {"Authorization": f"Bearer {KEY}"} if KEY else {}
roost = Client(base_url=os.environ.get("ROOST_URL", "http://127.0.0.1:8998"), headers=HEADERS)

# Every event makes the browser read the timeline again, one read after another, and so does a new connection.
PAGE = """<!doctype html><meta charset="utf-8"><title>roost</title>
<h1>For You</h1><ul>{for_you}</ul><h1>Home</h1><ul id="home">{home}</ul>
<script>
const list = document.getElementById("home"), events = new EventSource("/events");
let last = Promise.resolve();
const read = () => last = last.then(() => fetch("/home")).then((it) => it.ok ? it.text() : Promise.reject(it.status))
  .then((html) => {{ list.innerHTML = html; }}).catch(console.error);
for (const kind of ["open", "post", "edit", "delete", "resync"]) events.addEventListener(kind, read);
</script>"""


def why(reason: models.ReasonView) -> str:
    names = [user.name or user.handle for user in reason.users or []]
    words = {
        "followed": "you follow the author",
        "at_home": "boosted, or with a hashtag that you follow",
        "liked_by_followed": f"liked by {', '.join(names)}" + (f", {reason.others} more" if reason.others else ""),
        "hashtag": f"popular in #{reason.tag}",
        "group": "popular among people with your interests",
        "popular_in_language": f"popular in the language {reason.language}",
    }
    return words.get(reason.kind, reason.kind.replace("_", " "))


def item(entry: models.PostView, reasons: list[models.ReasonView]) -> str:
    post = entry.boost_of or entry
    by = post.author.name or post.author.handle
    if post is not entry:
        by += f", boosted by {entry.author.name or entry.author.handle}"
    text = f"<p>{escape(post.text)}</p>"
    if post.warning:
        text = f"<details><summary>{escape(post.warning)}</summary>{escape(post.text)}</details>"
    return f"<li><b>{escape(by)}</b>{text}<small>{escape('; '.join(map(why, reasons)))}</small></li>"


def items(answer: models.PageOfPostView | models.PageOfRankedPostView | models.ErrorBody | None) -> list:
    if answer is None or isinstance(answer, models.ErrorBody):
        raise ConnectionError(answer.message if answer else "unexpected response")
    return answer.items


def home() -> str:
    return "".join(item(post, []) for post in items(list_home_posts.sync(USER, client=roost, limit=20)))


def page() -> str:
    ranked = items(read_feed.sync(USER, "for-you", client=roost, limit=20))
    return PAGE.format(for_you="".join(item(it.post, it.reasons) for it in ranked), home=home())


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/events":
            return self.pass_events()
        render = {"/": page, "/home": home}.get(self.path)
        try:
            status, kind, text = (200, "html", render()) if render else (404, "plain", "not found")
        except (ConnectionError, httpx.HTTPError) as error:
            status, kind, text = 502, "plain", str(error)
        self.begin(status, f"text/{kind}; charset=utf-8")
        self.wfile.write(text.encode())

    def begin(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def pass_events(self) -> None:
        # An error closes the connection: after an error status, browsers would not connect again.
        with roost.get_httpx_client().stream("GET", f"/v1/users/{quote(USER)}/events", timeout=60) as events:
            self.begin(events.raise_for_status().status_code, "text/event-stream")
            for chunk in events.iter_raw():
                self.wfile.write(chunk)


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8080"))), Handler)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
