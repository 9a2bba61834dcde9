"""Compares responses with a description of Mastodon's API: `shapes.py URL ENDPOINTS DESCRIPTION`.

Reads with every GET endpoint, and makes every change that works; each must be described, or be named below with the
reason. Prints the number of responses that were compared.
"""

import datetime
import itertools
import re
import sys

from jsonschema import Draft202012Validator, FormatChecker

from world import PICTURE, description, endpoints, nameless, register, sign_up, sign_up_fields

URL, ENDPOINTS, DESCRIPTION = sys.argv[1:]
document, operations = description(DESCRIPTION)
# A status has one of these two. The description of each also allows the other.
for name, field in [("Quote", "quoted_status"), ("ShallowQuote", "quoted_status_id")]:
    document["components"]["schemas"][name]["required"].append(field)

# Responses that the description lacks, or has without a schema. The value is the schema that fits, if there is one.
UNDESCRIBED = {
    "DELETE /api/v1/conversations/{id}": None,
    "DELETE /api/v1/featured_tags/{id}": None,
    "DELETE /api/v1/filters/{id}": None,
    "DELETE /api/v2/filters/keywords/{id}": None,
    "DELETE /api/v2/filters/{id}": None,
    "DELETE /api/v1/lists/{id}": None,
    "DELETE /api/v1/lists/{id}/accounts": None,
    "DELETE /api/v1/media/{id}": None,
    "DELETE /api/v1/scheduled_statuses/{id}": None,
    "GET /.well-known/host-meta": None,
    "GET /.well-known/nodeinfo": None,
    "GET /.well-known/webfinger": None,
    "GET /api/v1/accounts/{id}/collections": None,
    "GET /api/v1/accounts/{id}/in_collections": None,
    "GET /api/v1/annual_reports": None,
    "GET /api/v1/annual_reports/{year}/state": None,
    "GET /api/v1/emails/check_confirmation": None,
    "GET /api/v1/instance/languages": None,
    "GET /api/v1/instance/translation_languages": None,
    "GET /api/v1/peers/search": None,
    "GET /api/v1/preferences": "Preferences",
    "GET /api/v1/search": "Search",
    "GET /api/v1/trends": None,
    "GET /health": None,
    "GET /nodeinfo/2.0": None,
    "POST /api/v1/conversations/{id}/unread": None,
    "POST /api/v1/lists/{id}/accounts": None,
    "POST /api/v1/notifications/clear": None,
    "POST /api/v1/notifications/{id}/dismiss": None,
    "POST /oauth/revoke": None,
}
# Responses that differ on purpose.
DIFFERENT = {
    # There is no /oauth/userinfo.
    "GET /.well-known/oauth-authorization-server: $: 'userinfo_endpoint' is a required property",
}
# Streams do not end; other tests read them.
STREAMS = "/api/v1/streaming"

formats = FormatChecker(formats=())


@formats.checks("date-time", raises=ValueError)
def is_time(value):
    return not isinstance(value, str) or datetime.datetime.fromisoformat(value).tzinfo is not None


@formats.checks("date", raises=ValueError)
def is_day(value):
    return not isinstance(value, str) or bool(datetime.date.fromisoformat(value))


@formats.checks("uri")
def is_uri(value):
    return not isinstance(value, str) or bool(re.fullmatch(r"[a-z][a-z0-9+.-]*:\S+", value))


class Shapes:
    """Responses so far."""

    def __init__(self):
        self.compared = 0
        self.wrong = []
        self.undescribed = set()

    def schema(self, name, method, path, status):
        operation = operations.get((method, nameless(path)), {})
        response = operation.get("responses", {}).get(str(status), {})
        found = response.get("content", {}).get("application/json", {}).get("schema")
        if found is None and status == 200:
            self.undescribed.add(name)
            known = UNDESCRIBED.get(name)
            found = known and {"$ref": f"#/components/schemas/{known}"}
        return found

    def compare(self, method, path, response):
        name = f"{method} {path}"
        if response.status_code not in (200, 404, 422):
            self.wrong.append(f"{name}: {response.status_code} {response.text}")
            return
        schema = self.schema(name, method, path, response.status_code)
        if schema is None:
            return
        if response.headers["Content-Type"].split(";")[0] != "application/json":
            self.wrong.append(f"{name}: {response.headers['Content-Type']}")
        whole = {**schema, "components": document["components"]}
        validator = Draft202012Validator(whole, format_checker=formats)
        # The description has the schema of a single filter here, but the response is a list, as in Mastodon.
        entities = response.json() if name == "GET /api/v1/filters" else [response.json()]
        for error in itertools.chain.from_iterable(map(validator.iter_errors, entities)):
            self.wrong.append(f"{name}: {error.json_path}: {error.message[:300]}")
        self.compared += 1


class World:
    """Users. Ada has everything that a list can show; Eve makes the changes."""

    def __init__(self):
        self.app, own = register(URL)
        self.own = own
        self.ada, self.bob, self.eve = (sign_up(own, name) for name in ("ada", "bob", "eve"))
        ada, bob, eve = self.ada, self.bob, self.eve
        names = {"display_name": "Ada", "note": "I post. #hi https://a.example/"}
        ada.done("PATCH", "/api/v1/accounts/update_credentials", names)
        for one, other in [(ada, bob), (bob, ada), (eve, bob)]:
            one.done("POST", f"/api/v1/accounts/{other.id}/follow", {"notify": "true"})
        pictures = {"avatar": PICTURE, "header": PICTURE}
        ada.done("PATCH", "/api/v1/accounts/update_credentials", pictures)
        root = ada.post("root @bob #hi https://a.example/", language="en", media_ids=[ada.picture()])
        self.status = bob.post("@ada reply", in_reply_to_id=root, spoiler_text="warning")
        ada.post("@bob reply #more", in_reply_to_id=self.status)
        # A hashtag needs two users to be a trend.
        bob.post("me too #hi")
        eve.post("by a user who is suggested")
        bob.done("PUT", f"/api/v1/statuses/{self.status}", {"status": "@ada edited"})
        for what in ("favourite", "bookmark"):
            ada.done("POST", f"/api/v1/statuses/{self.status}/{what}")
        bob.done("POST", f"/api/v1/statuses/{root}/favourite")
        for one, status in [(ada, self.status), (bob, root)]:
            one.done("POST", f"/api/v1/statuses/{status}/reblog")
        ada.done("POST", f"/api/v1/statuses/{root}/pin")
        for what, name in [("block", "blocked"), ("mute", "muted")]:
            other = sign_up(own, name).id
            ada.done("POST", f"/api/v1/accounts/{other}/{what}", {"duration": 3_600})
        [self.notification, *_] = ada.done("GET", "/api/v1/notifications")
        ada.done("PATCH", "/api/v1/accounts/update_credentials", {"locked": "true"})
        askers = [sign_up(own, name) for name in ("accepted", "rejected")]
        self.asked = [asker.id for asker in askers]
        for asker in askers:
            asker.done("POST", f"/api/v1/accounts/{ada.id}/follow")
        ada.done("POST", "/api/v1/markers", {"home[last_read_id]": root})
        for one in (ada, bob):
            self.featured = one.done("POST", "/api/v1/featured_tags", {"name": "hi"})["id"]
            one.done("POST", "/api/v1/tags/hi/follow")
        self.picture = ada.picture()
        self.list = ada.done("POST", "/api/v1/lists", {"title": "Friends"})["id"]
        ada.done("POST", f"/api/v1/lists/{self.list}/accounts", {"account_ids[]": bob.id})
        fields = {"title": "x", "context[]": "home", "keywords_attributes[][keyword]": "reply", "expires_in": 600}
        self.filter = ada.done("POST", "/api/v2/filters", fields)["id"]
        statuses = f"/api/v2/filters/{self.filter}/statuses"
        self.filtered = ada.done("POST", statuses, {"status_id": self.status})["id"]
        self.keyword = ada.done("POST", "/api/v1/filters", {"phrase": "x", "context[]": "home"})["id"]

        asks = {"status": "?", "poll[options][]": ["a", "b"], "poll[expires_in]": 300}
        self.conversation = bob.post("@ada between us", visibility="direct")
        self.poll = bob.done("POST", "/api/v1/statuses", asks)["poll"]["id"]
        later = {**asks, "scheduled_at": "2034-01-01T00:00:00Z", "in_reply_to_id": self.status}
        self.scheduled = ada.done("POST", "/api/v1/statuses", later)["id"]
        self.quote = ada.post("look at this", quoted_status_id=self.status)

    def concrete(self, path):
        path = path.replace("{quoting}", self.quote)
        for start, value in [
            ("/api/v1/accounts/", self.bob.id),
            ("/api/v1/statuses/", self.status),
            ("/api/v1/notifications/", self.notification["id"]),
            ("/api/v1/follow_requests/", self.asked[path.endswith("reject")]),
            ("/api/v1/featured_tags/", self.featured),
            ("/api/v1/conversations/", self.conversation),
            ("/api/v1/lists/", self.list),
            ("/api/v1/timelines/list/", self.list),
            ("/api/v1/media/", self.picture),
            ("/api/v1/filters/", self.keyword),
            ("/api/v1/polls/", self.poll),
            ("/api/v1/scheduled_statuses/", self.scheduled),
            ("/api/v2/filters/keywords/", self.keyword),
            ("/api/v2/filters/statuses/", self.filtered),
            ("/api/v2/filters/", self.filter),
        ]:
            if path.startswith(start):
                return re.sub(r"\{[^}]*\}", value, path)
        return re.sub(r"\{[^}]*\}", "hi", path)

    def query(self, path):
        return {
            "/.well-known/webfinger": {"resource": f"acct:ada@{URL.split('//')[1]}"},
            "/api/v1/accounts": {"id[]": self.bob.id},
            "/api/v1/accounts/familiar_followers": {"id[]": self.bob.id},
            "/api/v1/accounts/lookup": {"acct": "bob"},
            "/api/v1/accounts/relationships": {"id[]": [self.bob.id, self.eve.id]},
            "/api/v1/accounts/search": {"q": "b"},
            "/api/v1/markers": {"timeline[]": "home"},
            "/api/v1/search": {"q": "b"},
            "/api/v1/statuses": {"id[]": self.status},
            "/api/v2/search": {"q": "b"},
        }.get(path)

    def changes(self):
        """Every change: user, method, path and parameters. In this order, each change succeeds."""
        ada, bob, eve, app = self.ada, self.bob, self.eve, self.app
        yield self.own, "POST", "/api/v1/apps", {"client_name": "x", "redirect_uris": "https://a.example/"}
        grant = {"grant_type": "password", "username": "eve", "password": "correct horse battery"}
        yield self.own, "POST", "/oauth/token", {**grant, **app}
        yield self.own, "POST", "/oauth/revoke", {**app, "token": "unknown"}
        yield self.own, "POST", "/api/v1/accounts", sign_up_fields("new")
        update = {"display_name": "Eve", "avatar": PICTURE}
        yield eve, "PATCH", "/api/v1/accounts/update_credentials", update
        for what in ("avatar", "header"):
            yield eve, "DELETE", "/api/v1/profile/" + what, None
        for version in ("v1", "v2"):
            yield ada, "POST", f"/api/{version}/media", {"file": PICTURE}
        yield ada, "PUT", "/api/v1/media/{id}", {"description": "a red dot"}
        yield ada, "DELETE", "/api/v1/media/{id}", None
        for what in ("follow", "unfollow", "block", "unblock", "mute", "unmute", "remove_from_followers"):
            yield eve, "POST", "/api/v1/accounts/{id}/" + what, None
        yield eve, "POST", "/api/v1/accounts/{id}/note", {"comment": "met at the fair"}
        for what in ("authorize", "reject"):
            yield ada, "POST", "/api/v1/follow_requests/{account_id}/" + what, None
        yield ada, "POST", "/api/v1/markers", {"home[last_read_id]": self.status}
        yield eve, "POST", "/api/v1/statuses", {"status": "new #hi"}
        for what in ("favourite", "unfavourite", "reblog", "unreblog", "bookmark", "unbookmark", "mute", "unmute"):
            yield eve, "POST", "/api/v1/statuses/{id}/" + what, None
        yield eve, "POST", "/api/v1/polls/{id}/votes", {"choices[]": "1"}
        moved = {"scheduled_at": "2035-01-01T00:00:00Z"}
        yield ada, "PUT", "/api/v1/scheduled_statuses/{id}", moved
        yield ada, "DELETE", "/api/v1/scheduled_statuses/{id}", None
        for what in ("pin", "unpin"):
            yield bob, "POST", "/api/v1/statuses/{id}/" + what, None
        yield eve, "POST", "/api/v1/featured_tags", {"name": "new"}
        for what in ("feature", "unfeature", "follow", "unfollow"):
            yield eve, "POST", "/api/v1/tags/{name}/" + what, None
        yield bob, "DELETE", "/api/v1/featured_tags/{id}", None
        yield ada, "POST", "/api/v1/conversations/{id}/read", None
        yield ada, "POST", "/api/v1/conversations/{id}/unread", None
        yield ada, "DELETE", "/api/v1/conversations/{id}", None
        yield ada, "POST", "/api/v1/lists", {"title": "More"}
        yield ada, "PUT", "/api/v1/lists/{id}", {"replies_policy": "none"}
        for method in ("POST", "DELETE"):
            yield ada, method, "/api/v1/lists/{id}/accounts", {"account_ids[]": bob.id}
        yield ada, "DELETE", "/api/v1/lists/{id}", None
        for version in ("v1", "v2"):
            fields = {"phrase": "y", "title": "y", "context[]": "home"}
            yield ada, "POST", f"/api/{version}/filters", fields
            yield ada, "PUT", f"/api/{version}/filters/{{id}}", fields
        yield ada, "POST", "/api/v2/filters/{id}/keywords", {"keyword": "y"}
        yield ada, "PUT", "/api/v2/filters/keywords/{id}", {"keyword": "z"}
        yield ada, "DELETE", "/api/v2/filters/keywords/{id}", None
        self.keyword = ada.done("POST", "/api/v1/filters", {"phrase": "x", "context[]": "home"})["id"]
        yield ada, "DELETE", "/api/v1/filters/{id}", None
        yield ada, "POST", "/api/v2/filters/{id}/statuses", {"status_id": self.status}
        yield ada, "DELETE", "/api/v2/filters/statuses/{id}", None
        yield ada, "DELETE", "/api/v2/filters/{id}", None
        yield bob, "PUT", "/api/v1/statuses/{id}/interaction_policy", {"quote_approval_policy": "followers"}
        yield bob, "POST", "/api/v1/statuses/{id}/quotes/{quoting}/revoke", None
        yield bob, "PUT", "/api/v1/statuses/{id}", {"status": "edited again"}
        yield bob, "DELETE", "/api/v1/statuses/{id}", None
        yield ada, "POST", "/api/v1/notifications/{id}/dismiss", None
        yield ada, "POST", "/api/v1/notifications/clear", None


def main():
    shapes, world = Shapes(), World()
    found = [row for row in endpoints(ENDPOINTS) if not row["path"].startswith(STREAMS)]
    works = {(row["method"], row["path"]) for row in found if row["state"] == "Works"}
    for row in found:
        path = row["path"]
        if row["method"] != "GET" or row["state"] == "Missing":
            continue
        is_of_app = path == "/api/v1/apps/verify_credentials"
        client = world.own if is_of_app else world.ada
        response = client.send("GET", world.concrete(path), world.query(path))
        shapes.compare("GET", path, response)
        # Every list must have an item, because the shape of an empty list cannot be checked.
        if row["state"] == "Works" and response.text in ("[]", ""):
            shapes.wrong.append(f"GET {path} shows nothing")
        if row["state"] == "Works" and response.status_code != 200:
            shapes.wrong.append(f"GET {path}: {response.status_code} {response.text}")
    made = set()
    for client, method, path, fields in world.changes():
        response = client.send(method, world.concrete(path), fields)
        shapes.compare(method, path, response)
        assert response.status_code == 200, f"{method} {path}: {response.text}"
        made.add((method, path))
    changes = {(method, path) for method, path in works if method != "GET"}
    assert made == changes, f"changes that are not made here: {changes - made}"
    unknown = [line for line in shapes.wrong if line not in DIFFERENT]
    assert not unknown, "\n".join(unknown)
    assert DIFFERENT == set(shapes.wrong), f"not different any more: {DIFFERENT - set(shapes.wrong)}"
    undescribed = set(UNDESCRIBED)
    assert shapes.undescribed == undescribed, shapes.undescribed ^ undescribed
    print(f"{shapes.compared} responses")


main()
