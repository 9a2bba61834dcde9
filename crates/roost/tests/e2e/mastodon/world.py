"""Users with tokens, and functions that act as them, for the checks of all endpoints."""

import itertools
import json

import requests

PASSWORD = "correct horse battery"
SCOPES = "read write follow push profile"
numbers = itertools.count(1)
# A picture of one pixel.
PICTURE = (
    b"GIF89a\x01\0\x01\0\x80\0\0\xff\0\0\0\0\xff"
    b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b"
)


class User:
    """A client, with the token of a user or without a token."""

    def __init__(self, url, token=None):
        self.url = url
        self.token = token

    def send(self, method, path, fields=None, **options):
        # Sign-ups are limited by address. The server trusts a proxy on this machine, so each can name another.
        number = next(numbers)
        headers = {"X-Forwarded-For": f"10.1.{number >> 8 & 255}.{number & 255}"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        files = {name: value for name, value in (fields or {}).items() if isinstance(value, bytes)}
        if files:
            options["files"] = files
            options["data"] = {name: value for name, value in fields.items() if name not in files}
        else:
            options["params" if method == "GET" else "json"] = fields
        return requests.request(method, self.url + path, headers=headers, timeout=60, **options)

    def done(self, method, path, fields=None):
        """Sends a request, which must succeed. Returns the entity in the response."""
        response = self.send(method, path, fields)
        assert response.status_code == 200, f"{method} {path}: {response.text}"
        return response.json()

    def picture(self):
        """Uploads a picture. Returns its id."""
        fields = {"file": PICTURE, "description": "a dot", "focus": "0.5,-0.5"}
        return self.done("POST", "/api/v2/media", fields)["id"]

    def post(self, text, **more):
        return self.done("POST", "/api/v1/statuses", {"status": text, **more})["id"]


def register(url):
    """Registers an app. Returns it, and a client with a token of the app itself."""
    fields = {
        "client_name": "Checks",
        "redirect_uris": "urn:ietf:wg:oauth:2.0:oob",
        "scopes": SCOPES,
        "website": "https://app.example/",
    }
    app = User(url).done("POST", "/api/v1/apps", fields)
    keys = {name: app[name] for name in ("client_id", "client_secret")}
    fields = {"grant_type": "client_credentials", "scope": SCOPES, **keys}
    token = User(url).done("POST", "/oauth/token", fields)["access_token"]
    return keys, User(url, token)


def sign_up_fields(name):
    return {
        "username": name,
        "email": f"{name}@example.org",
        "password": PASSWORD,
        "agreement": True,
        "locale": "en",
    }


def sign_up(app, name):
    token = app.done("POST", "/api/v1/accounts", sign_up_fields(name))["access_token"]
    user = User(app.url, token)
    user.id = user.done("GET", "/api/v1/accounts/verify_credentials")["id"]
    return user


def endpoints(file):
    """The endpoints of the server, each with method, path and state."""
    with open(file) as text:
        return json.load(text)


def description(file):
    """The description of Mastodon's API, without the names of parameters in paths."""
    with open(file) as text:
        document = json.load(text)
    operations = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method in ("get", "post", "put", "patch", "delete"):
                operations[method.upper(), nameless(path)] = operation
    return document, operations


def nameless(path):
    """A path with `{}` for each parameter."""
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))
