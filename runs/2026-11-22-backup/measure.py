#!/usr/bin/env python3
"""What a backup and an archive cost other clients of a loaded server.

    measure.py ROOST FOLDER OUT.json [--users N] [--rounds N] [--seconds N]

One server with N users is under full load: redis-benchmark sets values of 500 bytes as fast as it can, under
--durability always. A stranger sends 100 requests per second over one HTTP connection, by turns a home timeline and
a new post; a latency counts from when the request was due. Rounds by turns, in random order: without a backup, and
with one backup after the other. Then the same for serve without and with --archive, each on a server of its own.
Raw latencies (milliseconds) go to OUT.json.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import threading
import time

KEY = "the-key-of-this-script"
RATE = 100
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}


class Server:
    def __init__(self, data, *more):
        self.process = subprocess.Popen(
            [ROOST, "serve", "--listen", "127.0.0.1:0", "--redis-listen", "127.0.0.1:0", "--data", str(data), *more],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT | {"ROOST_KEY": KEY},
        )
        for line in self.process.stdout:
            if found := re.match(r"roost serves redis://(\S+)", line):
                self.redis = found[1]
            if found := re.match(r"roost serves http://(\S+)", line):
                self.http = found[1]
                return
        raise SystemExit("the server does not start")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def load(server):
    host, port = server.redis.split(":")
    return subprocess.Popen(
        ["redis-benchmark", "-h", host, "-p", port, "-a", KEY, "-t", "set", "-d", "500", "-r", "100000",
         "-c", "16", "-P", "4", "-n", "1000000000", "--csv"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )


def metric(server, name):
    connection = http.client.HTTPConnection(server.http)
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {KEY}"})
    text = connection.getresponse().read().decode()
    return float(re.search(rf"^{name} (.*)$", text, re.M)[1])


def stranger(server, seconds):
    """Latencies in milliseconds."""
    connection = http.client.HTTPConnection(server.http)
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    start, found = time.monotonic(), {"home": [], "post": []}
    for number in range(int(seconds * RATE)):
        due = start + number / RATE
        time.sleep(max(0.0, due - time.monotonic()))
        user = random.randrange(USERS)
        if number % 2 == 0:
            connection.request("GET", f"/v1/users/{user}/timeline", headers=headers)
        else:
            connection.request("POST", f"/v1/users/{user}/posts", json.dumps({"text": f"post {number}"}), headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (200, 201), answer.status
        found["home" if number % 2 == 0 else "post"].append(round((time.monotonic() - due) * 1e3, 3))
    return found


def window(server, seconds, backups):
    """One window; with backups, one after the other is made meanwhile."""
    stop, made = threading.Event(), []

    def make():
        while not stop.is_set():
            start = time.monotonic()
            subprocess.run(
                [ROOST, "backup", "--server", f"http://{server.http}", "--to", str(WORK / "BACKUP")],
                check=True, capture_output=True, env=ENVIRONMENT | {"ROOST_TARGET_KEY": KEY},
            )
            made.append(round(time.monotonic() - start, 2))

    thread = threading.Thread(target=make)
    if backups:
        thread.start()
    before, start = metric(server, "roost_commands_total"), time.monotonic()
    latencies = stranger(server, seconds)
    rate = (metric(server, "roost_commands_total") - before) / (time.monotonic() - start)
    stop.set()
    if backups:
        thread.join()
    return {"latencies_ms": latencies, "changes_per_second": round(rate), "backups_s": made}


def p(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def compare(title, rounds, without, with_):
    print(f"\n### {title}\n\n| | without, p50, p99 | with, p50, p99 | ratio of p99, each round | median |\n|---|---|---|---|---|")
    for kind in ("home", "post"):
        ratios = [
            p(one[with_]["latencies_ms"][kind], 0.99) / p(one[without]["latencies_ms"][kind], 0.99) for one in rounds
        ]
        cell = {
            name: [statistics.median(p(one[name]["latencies_ms"][kind], share) for one in rounds) for share in (0.5, 0.99)]
            for name in (without, with_)
        }
        listed = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(
            f"| {kind} | {cell[without][0]:.2f}, {cell[without][1]:.1f} ms | {cell[with_][0]:.2f}, {cell[with_][1]:.1f} ms "
            f"| {listed} | {statistics.median(ratios):.2f} |"
        )
    rates = [one[with_]["changes_per_second"] / one[without]["changes_per_second"] for one in rounds]
    print(f"| changes per second | {statistics.median(one[without]['changes_per_second'] for one in rounds):.0f} "
          f"| {statistics.median(one[with_]['changes_per_second'] for one in rounds):.0f} "
          f"| {', '.join(f'{rate:.2f}' for rate in rates)} | {statistics.median(rates):.2f} |")


def main():
    global ROOST, WORK, USERS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("roost")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=8)
    given = parser.parse_args()
    ROOST, WORK, USERS = given.roost, given.folder.absolute(), given.users
    WORK.mkdir(parents=True, exist_ok=True)
    data = WORK / "data"
    if not data.exists():
        server = Server(data)
        subprocess.run(
            [ROOST, "simulate", "--target", f"http://{server.http}", "--users", str(USERS), "--duration", "5s",
             "--rate", "50", "--plain"],
            env=ENVIRONMENT | {"ROOST_TARGET_KEY": KEY}, capture_output=True, check=False,
        )
        server.stop()
    print(f"load average before: {os.getloadavg()[0]:.1f}")
    results = {"backup": [], "archive": []}
    # The same sizes for all windows: 100,000 keys.
    server = Server(data)
    writer = load(server)
    stranger(server, 10)
    for _ in range(given.rounds):
        order = ["without", "with"]
        random.shuffle(order)
        results["backup"].append({name: window(server, given.seconds, name == "with") for name in order})
    writer.terminate()
    server.stop()
    compare("A backup", results["backup"], "without", "with")
    for _ in range(given.rounds):
        order, one = ["without", "with"], {}
        random.shuffle(order)
        for name in order:
            copy, archive = WORK / "copy", WORK / "archive"
            for folder in (copy, archive):
                shutil.rmtree(folder, ignore_errors=True)
            subprocess.run(["cp", "-a", str(data), str(copy)], check=True)
            (copy / "identity").unlink(missing_ok=True)
            more = ("--archive", str(archive), "--archive-interval", "1s") if name == "with" else ()
            server = Server(copy, *more)
            writer = load(server)
            stranger(server, 2)
            one[name] = window(server, given.seconds, False)
            writer.terminate()
            server.stop()
        results["archive"].append(one)
    compare("serve --archive (on the same disk, interval 1 s)", results["archive"], "without", "with")
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")
    given.out.write_text(json.dumps(results, separators=(",", ":")))


main()
