"""Memory and disk of a server with a million users, follows, posts and keys, one kind after another.

Starts `roost serve` on a temporary directory, loads it over HTTP, and after each step prints what has become
of the process and of the directory. Usage: python3 sizing.py path/to/roost
"""

import http.client
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

PORT = 18971


def start(roost, data):
    process = subprocess.Popen(
        [roost, "serve", "--open", "--data", data, "--listen", f"127.0.0.1:{PORT}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", PORT)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return process
        except OSError:
            time.sleep(0.05)


def batch(bodies):
    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    for body in bodies:
        connection.request("POST", "/v1/batch", body, {"Content-Type": "application/x-ndjson"})
        answer = connection.getresponse()
        results = answer.read()
        assert answer.status == 200 and b"error" not in results, results[:300]


def chunks(lines):
    out = []
    for line in lines:
        out.append(line)
        if len(out) == 5_000:
            yield "".join(out)
            out = []
    yield "".join(out)


def disk(data):
    total = 0
    for folder, _, files in os.walk(data):
        total += sum(os.stat(os.path.join(folder, name)).st_blocks * 512 for name in files)
    return total


def memory(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def main(roost):
    n = 1_000_000
    seeded = random.Random(1)

    def text():
        """100 characters that hardly compress, as an upper bound."""
        return "".join(seeded.choices("abcdefghijklmnopqrstuvwxyz    ", k=98)).strip() + "."

    steps = [
        ("1,000,000 users", (f'{{"op":"register","handle":"u{i}"}}\n' for i in range(n))),
        ("1,000,000 follows", (f'{{"op":"follow","user":{i},"other":{(i * 7 + k) % n}}}\n'
                               for i in range(100_000) for k in range(1, 11))),
        ("1,000,000 posts of 100 characters", (f'{{"op":"post","user":{i},"text":"{text()}"}}\n' for i in range(n))),
    ]
    with tempfile.TemporaryDirectory() as data:
        process, before = None, 0
        for name, lines in steps:
            process = start(roost, data)
            batch(chunks(lines))
            resident = memory(process)
            process.send_signal(signal.SIGTERM)
            process.wait()
            process = start(roost, data)
            fresh = memory(process)
            process.send_signal(signal.SIGTERM)
            process.wait()
            now = disk(data)
            print(f"{name}: {(now - before) / n:.0f} bytes each on disk ({now / 1e6:.0f} MB in all); resident "
                  f"{resident / 1e6:.0f} MB after loading, {fresh / 1e6:.0f} MB after a restart", flush=True)
            before = now


main(sys.argv[1])
