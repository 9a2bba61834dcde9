"""Random requests of schemathesis to all endpoints that work.

`random_requests.py URL ENDPOINTS DESCRIPTION FOLDER N PHASES`: N is the number of random examples per endpoint, both
valid and invalid. The phase `fuzzing` sends the examples; the phase `coverage` sends requests at the limits of the
description. `random_hooks.py` chooses the user of each request, and checks the responses. Prints the number of
requests, and exits with 0 if all responses are as they should be.
"""

import json
import os
import subprocess
import sys

from world import description, endpoints, nameless, register, sign_up

URL, ENDPOINTS, DESCRIPTION, FOLDER, EXAMPLES, PHASES = sys.argv[1:]
# A user may send 1,500 requests in five minutes, and publish 300 posts in three hours.
USERS = 24
# Streams do not end.
STREAMS = "/api/v1/streaming"


def world():
    """Creates users who all follow the first one. Returns their tokens, and ids of what they have."""
    _, own = register(URL)
    users = [sign_up(own, f"user{number}") for number in range(USERS)]
    statuses, first = [], users[0]
    for user in users[1:]:
        user.done("POST", f"/api/v1/accounts/{first.id}/follow")
        statuses.append(user.post("hello @user0 #hi"))
        statuses.append(first.post("more", in_reply_to_id=statuses[-1]))
    notifications = [found["id"] for found in first.done("GET", "/api/v1/notifications")]
    return {
        "own": own.token,
        "tokens": [user.token for user in users],
        "accounts": [user.id for user in users],
        "statuses": statuses,
        "notifications": notifications,
    }


def reduced(document):
    """The description of the endpoints that work."""
    found = endpoints(ENDPOINTS)
    works = {
        (row["method"], nameless(row["path"]))
        for row in found
        if row["state"] == "Works" and not row["path"].startswith(STREAMS)
    }
    paths = {}
    for path, methods in document["paths"].items():
        kept = {name: what for name, what in methods.items() if (name.upper(), nameless(path)) in works}
        if kept:
            paths[path] = kept
    assert sum(map(len, paths.values())) > 50, paths.keys()
    # The hooks send tokens. Links between operations and headers of rates are not used.
    for operation in (operation for methods in paths.values() for operation in methods.values()):
        operation.pop("security", None)
        for response in operation["responses"].values():
            response.pop("links", None)
            response.pop("headers", None)
    components = {"schemas": document["components"]["schemas"]}
    return {**document, "paths": paths, "components": components, "security": []}


def main():
    document, _ = description(DESCRIPTION)
    api, state, count = (os.path.join(FOLDER, name) for name in ("api.json", "state.json", "count"))
    with open(api, "w") as file:
        json.dump(reduced(document), file)
    with open(state, "w") as file:
        json.dump(world(), file)
    checks = "content_type_conformance,server_error,error_text"
    arguments = ["--url", URL, "--checks", checks, "--max-examples", EXAMPLES, "--seed", "20261123"]
    arguments += ["--phases", PHASES, "--generation-database", "none", "--warnings", "off"]
    arguments += ["--suppress-health-check", "all", "--continue-on-failure", "--no-color"]
    environment = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "random_hooks",
        "RANDOM_STATE": state,
        "RANDOM_COUNT": count,
    }
    command = [sys.executable, "-m", "schemathesis.cli", "run", api, *arguments]
    run = subprocess.run(command, env=environment, cwd=FOLDER, capture_output=True, text=True)
    if run.returncode != 0:
        print(run.stdout, run.stderr, file=sys.stderr)
        sys.exit(1)
    with open(count) as file:
        print(file.read())


main()
