"""Hooks of schemathesis for `random_requests.py`: they send existing tokens and ids, and check responses."""

import atexit
import collections
import itertools
import json
import os
import zlib

import schemathesis

with open(os.environ["RANDOM_STATE"]) as file:
    STATE = json.load(file)

numbers = itertools.count(1)
statuses = collections.Counter()


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Replaces every second id by one that exists, because other requests fail when the id is looked up."""
    path = context.operation.path.split("/")
    ids = next((STATE[kind] for kind in ("accounts", "statuses", "notifications") if kind in path), None)
    for name, value in (path_parameters or {}).items():
        number = zlib.crc32(str(value).encode())
        if ids and number % 2:
            path_parameters[name] = ids[number // 2 % len(ids)]
    return path_parameters


@schemathesis.hook
def before_call(context, case, kwargs):
    """Sends each request as another user from another address, because one user would soon exceed the rates."""
    number = next(numbers)
    own = "/api/v1/accounts" == case.operation.path and case.method.upper() == "POST"
    token = STATE["own"] if own else STATE["tokens"][number % len(STATE["tokens"])]
    case.headers["Authorization"] = f"Bearer {token}"
    case.headers["X-Forwarded-For"] = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


@schemathesis.hook
def after_call(context, case, response):
    statuses[response.status_code] += 1


@schemathesis.check
def server_error(context, response, case):
    """Checks that no request fails because of the server. A busy server must say when to try again."""
    is_busy = response.status_code == 503 and "retry-after" in response.headers
    assert response.status_code < 500 or is_busy, f"{response.status_code} {response.text}"


@schemathesis.check
def error_text(context, response, case):
    """Checks that an error has a text, which apps show."""
    if response.status_code >= 400 and case.method.upper() != "HEAD":
        kind = response.headers.get("content-type", [""])[0]
        assert kind.startswith("application/json"), f"{response.status_code} is {kind or 'nothing'}"
        assert json.loads(response.text)["error"], response.text


@atexit.register
def write_count():
    counts = ", ".join(f"{count} with {status}" for status, count in sorted(statuses.items()))
    with open(os.environ["RANDOM_COUNT"], "w") as file:
        file.write(f"{sum(statuses.values())} requests: {counts}")
