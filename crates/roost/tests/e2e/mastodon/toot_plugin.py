"""A plugin of pytest for toot's own integration tests.

It reads which tests fail today from the file in TOOT_LACKS: pytest then fails if one of them passes, or if another one
fails. The suite expects a server at http://localhost:3000 without limits; connections go to TOOT_SERVER instead, and
each request comes from an address of its own.
"""

import itertools
import os
import uuid

import pytest
import requests
import urllib3.util.connection as connection

SUITE = ("localhost", 3000)

connect = connection.create_connection
send = requests.Session.send
random_uuid = uuid.uuid4
numbers = itertools.count(1)


def connect_to_server(address, *args, **options):
    if address == SUITE:
        host, port = os.environ["TOOT_SERVER"].rsplit(":", 1)
        address = (host, int(port))
    return connect(address, *args, **options)


def send_from_new_address(session, request, **options):
    number = next(numbers)
    # The server trusts a proxy on its own machine.
    request.headers["X-Forwarded-For"] = f"10.0.{number >> 8}.{number & 255}"
    return send(session, request, **options)


def uuid_with_letter():
    """A UUID whose last ten digits contain a letter. They are a user name, which a test compares with the same name in
    capitals. One name in 110 would have no letter, and the test would fail with any server."""
    while True:
        found = random_uuid()
        if not str(found)[-10:].isdigit():
            return found


connection.create_connection = connect_to_server
requests.Session.send = send_from_new_address
uuid.uuid4 = uuid_with_letter


def lacks():
    """The tests that are expected to fail, each with the reason."""
    with open(os.environ["TOOT_LACKS"]) as lines:
        return dict(line.rstrip("\n").split(" -- ", 1) for line in lines)


def pytest_collection_modifyitems(items):
    reasons = lacks()
    for item in items:
        name = item.nodeid.rsplit("/", 1)[-1]
        if reason := reasons.pop(name, None):
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason))
    if reasons:
        raise pytest.UsageError(f"toot has no such tests: {', '.join(reasons)}")
