#!/usr/bin/env python3
"""Goes through the disasters of docs/operations.md on copies of one data directory, with the real binary.

    disasters.py ROOST FOLDER [--users N] [--only NAME]

FOLDER gets the original directory, its backup and its archive once, and a copy for each disaster. Prints a table
in Markdown: what was done, with which commands and how long they took, and what was lost. Exits with 1 if a disaster
does not end with a server that has what it should have.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request

KEY = "the-key-of-this-script"
# Posts made after the backup: only the archive, or the log, has them.
LATER = 500


def clean():
    return {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}


class Server:
    """A server that serves, or the error with which it ended."""

    def __init__(self, data, *more, wrapper=(), key=KEY):
        self.start = time.monotonic()
        environment = clean() | ({"ROOST_KEY": key} if key else {})
        command = [*wrapper, ROOST, "serve", "--listen", "127.0.0.1:0", "--data", str(data), *more]
        self.log = open(WORK / "server.log", "w+")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment
        )
        self.url = None
        for line in self.process.stdout:
            if line.startswith("roost serves http://"):
                self.url = line.split()[-1]
                break
        self.took = time.monotonic() - self.start
        if not self.url:
            self.process.wait()

    def error(self):
        self.log.seek(0)
        lines = [line.strip() for line in self.log if line.strip()]
        errors = [line for line in lines if line.startswith("error: ")]
        return (errors or lines or ["it ended"])[-1]

    def get(self, path, method="GET", body=None, key=KEY):
        headers = {"Authorization": f"Bearer {key}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def metric(self, name):
        text = self.get("/metrics")[1].decode()
        return float(re.search(rf"^{name} (.*)$", text, re.M).group(1))

    def counts(self):
        return tuple(int(self.metric(name)) for name in ("roost_users", "roost_posts", "roost_follows"))

    def refused_reads(self):
        """How many of 300 profiles, timelines and lists of posts cannot be read."""
        step = max(1, USERS // 100)
        paths = [f"/v1/users/{user}{part}" for user in range(0, USERS, step) for part in ("", "/timeline", "/posts")]
        return sum(self.get(path)[0] == 500 for path in paths), len(paths)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()

    def kill(self):
        self.process.kill()
        self.process.wait()


def run(*arguments, codes=(0,), wrapper=()):
    """Runs the binary; returns how long it took and what it printed."""
    start = time.monotonic()
    done = subprocess.run([*wrapper, ROOST, *map(str, arguments)], capture_output=True, text=True, env=clean())
    took = time.monotonic() - start
    if done.returncode not in codes:
        raise SystemExit(f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return took, done.returncode, done.stdout + done.stderr


ROWS = []
FAILED = []


def row(disaster, seen, way, took, lost, good=True):
    ROWS.append((disaster, seen, way, took, lost))
    if not good:
        FAILED.append(disaster)
    print(f"| {disaster} | {seen} | {way} | {took} | {lost} |", flush=True)


def seconds(value):
    return f"{value:.1f} s"


def copy():
    to = WORK / "copy"
    shutil.rmtree(to, ignore_errors=True)
    subprocess.run(["cp", "-a", str(ORIGINAL), str(to)], check=True)
    return to


def short(text):
    text = text.replace(str(WORK) + "/", "")
    text = re.sub(r"[0-9a-f]{16,}", "…", text).replace("|", "/")
    return text if len(text) < 230 else text[:230] + " …"


def restored(*more):
    """Restores the backup and the archive; returns the directory and how long it took."""
    to = WORK / "restored"
    shutil.rmtree(to, ignore_errors=True)
    took = run("restore", BACKUP, "--archive", ARCHIVE, "--data", to, *more)[0]
    return to, took


def loss(counts):
    names = ("users", "posts", "follows")
    lost = [f"{before - now} {name}" for name, before, now in zip(names, COUNTS, counts) if before != now]
    return "nothing" if not lost else ", ".join(lost)


def make_original():
    server = Server(ORIGINAL, "--archive", str(ARCHIVE), "--archive-interval", "5s")
    run("key", "create", "app", "--data", ORIGINAL)
    start = time.monotonic()
    environment = clean() | {"ROOST_TARGET_KEY": KEY}
    subprocess.run(
        [ROOST, "simulate", "--target", server.url, "--users", str(USERS), "--duration", "5s", "--rate", "50", "--plain"],
        env=environment, stdout=open(WORK / "simulate.log", "w"), stderr=subprocess.STDOUT, check=False,
    )
    print(f"populated with {USERS} users in {seconds(time.monotonic() - start)}", file=sys.stderr)
    server.get("/v1/users/0/stories", "POST", {"text": "a story", "ttl_s": 600_000})
    time.sleep(35)  # an idle server takes a checkpoint after 30 s
    start = time.monotonic()
    done = subprocess.run([ROOST, "backup", "--server", server.url, "--to", str(BACKUP)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    row("(a backup of the running server)", f"{BACKUP.stat().st_size >> 20} MiB", "`roost backup --to BACKUP`", seconds(time.monotonic() - start), "–")
    for at in range(LATER):
        status, _ = server.get(f"/v1/users/{at}/posts", "POST", {"text": f"after the backup {at}"})
        assert status == 201
    counts = server.counts()
    server.stop()
    (WORK / "counts.json").write_text(json.dumps(counts))


def salvage_and_restore(data, disaster, seen, keep_log=True):
    """The way out for a directory that cannot be repaired: its log into the archive, then a restore."""
    way = []
    took = 0.0
    if keep_log:
        more, code, _ = run("backup", "--data", data, "--archive", ARCHIVE, codes=(0, 1))
        took += more
        way.append("`roost backup --data DIR --archive ADIR`" + ("" if code == 0 else " (refused)"))
    to, more = restored()
    way.append("`roost restore BACKUP --archive ADIR --data NEW`")
    server = Server(to)
    counts = server.counts() if server.url else ()
    took += more + server.took
    row(disaster, seen, ", ".join(way), seconds(took), loss(counts), counts == COUNTS)
    server.stop()


def repair_or_restore(data, disaster, seen):
    """A repair, and if that loses something or is refused, a restore."""
    to = WORK / "repaired"
    shutil.rmtree(to, ignore_errors=True)
    took, code, text = run("repair", data, "--to", to, codes=(0, 1, 3))
    way = f"`roost repair DATA --to DIR` ({seconds(took)})"
    if code == 0:
        server = Server(to)
        counts = server.counts() if server.url else ()
        row(disaster, seen, way, seconds(took + server.took), loss(counts), counts == COUNTS)
        return server.stop()
    lines = [line for line in text.splitlines() if line.strip()]
    said = short("; ".join(lines[-3:]))
    seen += f"; {way} " + (f"is refused: “{said}”" if code == 1 else f"loses something: “{said}”")
    return salvage_and_restore(data, disaster, seen)


def look(data, disaster):
    """What verify and serve say about a changed directory, and the way out."""
    took, code, text = run("verify", data, codes=(0, 1, 3))
    lines = [line for line in text.splitlines() if line.strip()]
    said = {0: "no damage", 3: "damage", 1: "not checked"}[code]
    detail = next((line for line in lines if "damage" in line or "cannot" in line or "not" in line), "") if code else ""
    seen = f"`roost verify` ({seconds(took)}): {said}" + (f", “{short(detail)}”" if detail else "")
    server = Server(data)
    if not server.url:
        seen += f"; `serve`: “{short(server.error())}”"
        if "--accept-clock" in server.error():
            server = Server(data, "--accept-clock")
            counts = server.counts()
            row(disaster, seen, "`roost serve --accept-clock`, once", seconds(server.took), loss(counts), counts == COUNTS)
            return server.stop()
        return repair_or_restore(data, disaster, seen)
    refused, asked = server.refused_reads()
    counts = server.counts()
    server.stop()
    if code == 0 and refused == 0 and counts == COUNTS:
        return row(disaster, seen + "; `serve` starts", "nothing to do", seconds(server.took), "nothing")
    seen += f"; `serve` starts, {refused} of {asked} reads refused"
    return repair_or_restore(data, disaster, seen)


def kinds(data):
    """A file of each kind: the largest."""
    found = {}
    for path in sorted(data.rglob("*")):
        if not path.is_file() or path.stat().st_size == 0:
            continue
        name = re.sub(r"(log/|tables/|/v)\d+", r"\1N", str(path.relative_to(data)))
        size = path.stat().st_size
        if name not in found or size > found[name].stat().st_size:
            found[name] = path
    return found


def flipped_bits():
    for name in kinds(ORIGINAL):
        data = copy()
        path = kinds(data)[name]
        bytes_ = bytearray(path.read_bytes())
        at = len(bytes_) // 3
        # In the log, where it has something.
        if name.startswith("log/"):
            at = 700
        bytes_[at] ^= 4
        path.write_bytes(bytes_)
        look(data, f"one bit flipped in `{name}`")


def deleted_files():
    for name in kinds(ORIGINAL):
        data = copy()
        kinds(data)[name].unlink()
        look(data, f"`{name}` deleted")


def lost_disk():
    to, took = restored()
    server = Server(to)
    counts = server.counts()
    row(
        "the disk of the data directory is lost",
        "–",
        "`roost restore BACKUP --archive ADIR --data NEW`, `roost serve --data NEW`",
        f"{seconds(took)} + {seconds(server.took)}",
        loss(counts) + " (in general, the changes of the last `--archive-interval`)",
        counts == COUNTS,
    )
    server.stop()


def damaged_archive():
    archive = WORK / "archive-copy"
    shutil.rmtree(archive, ignore_errors=True)
    subprocess.run(["cp", "-a", str(ARCHIVE), str(archive)], check=True)
    last = max(archive.glob("*.log"))
    bytes_ = bytearray(last.read_bytes())
    bytes_[len(bytes_) // 2] ^= 4
    last.write_bytes(bytes_)
    took, _, text = run("verify", archive, codes=(3,))
    to = WORK / "restored"
    shutil.rmtree(to, ignore_errors=True)
    _, _, error = run("restore", BACKUP, "--archive", archive, "--data", to, codes=(1,))
    until = re.search(r"add --to (\S+):", error).group(1)
    more = run("restore", BACKUP, "--archive", archive, "--data", to, "--to", until)[0]
    server = Server(to)
    detail = next(line for line in text.splitlines() if "damaged" in line)
    row(
        "one bit flipped in the archive",
        f"`roost verify ADIR` ({seconds(took)}): “{short(detail)}”",
        "nothing while the server is well: make a backup. After a lost disk: `roost restore … --to TIME`, with the time that the error names",
        seconds(more + server.took),
        loss(server.counts()) + " in the latter case",
        bool(server.url),
    )
    server.stop()


def full_disk():
    data = copy()
    size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file()) + (700 << 20)
    mount = WORK / "mount"
    mount.mkdir(exist_ok=True)
    script = f"mount -t tmpfs -o size={size} tmpfs {mount} && cp -a {data}/. {mount}/ && echo mounted && exec sleep 600"
    holder = subprocess.Popen(["unshare", "-rm", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        if holder.stdout.readline().strip() != "mounted":
            return row("the disk is full", "not tried: nothing can be mounted here", "–", "–", "–")
        inside = ("nsenter", "-t", str(holder.pid), "-U", "-m", "--preserve-credentials", "--")
        server = Server(mount, wrapper=inside)
        other = pathlib.Path(f"/proc/{holder.pid}/root{mount}/other")
        with open(other, "wb") as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
            except OSError:
                pass
        start = time.monotonic()
        while server.get("/v1/users/0/posts", "POST", {"text": "more"})[0] != 507:
            time.sleep(0.1)
        reads = server.get("/v1/users/0/timeline")[0]
        server.kill()
        server = Server(mount, wrapper=inside)
        starts = seconds(server.took)
        other.unlink()
        start = time.monotonic()
        while server.get("/v1/users/0/posts", "POST", {"text": "more"})[0] == 507:
            time.sleep(0.1)
        took = time.monotonic() - start
        users = server.counts()[0]
        row(
            "the disk is full to the last byte, and the server is killed",
            f"changes get 507, reads {reads}; it starts again in {starts} on the full disk",
            "make room",
            f"{seconds(took)} until changes are accepted",
            "nothing",
            users == COUNTS[0] and reads == 200,
        )
        server.stop()
    finally:
        holder.kill()
        holder.wait()


def wrong_clock():
    if not shutil.which("faketime"):
        return row("the clock is wrong", "not tried: faketime is missing", "–", "–", "–")
    data = copy()
    for name, shift in (("30 days ahead", "+30d"), ("30 days back", "-30d")):
        wrapper = ("faketime", "-f", shift)
        server = Server(data, wrapper=wrapper)
        seen = f"“{short(server.error())}”" if not server.url else "it starts"
        server.stop()
        server = Server(data)
        counts = server.counts() if server.url else ()
        row(f"the clock is {name}", seen, "set the clock, `roost serve`", seconds(server.took), loss(counts), counts == COUNTS)
        server.stop()


def forgotten_key():
    data = copy()
    took, _, text = run("key", "create", "recovered", "--scope", "read,write,admin", "--data", data)
    key = text.strip().splitlines()[0].strip()
    server = Server(data, key=None)
    status = server.get("/v1/users/0", key=key)[0]
    row("the application key is forgotten", "every request gets 401", "`roost key create NAME --data DIR --scope read,write,admin`", seconds(took), "nothing", status == 200)
    server.stop()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def failed_upgrade():
    data = copy()
    # What a later version would leave: a segment in a format that this version does not know.
    segment = max((data / "log").glob("*.log"))
    bytes_ = bytearray(segment.read_bytes())
    bytes_[4:8] = struct.pack("<I", 99)
    bytes_[24:28] = struct.pack("<I", crc32c(bytes_[:24]))
    segment.write_bytes(bytes_)
    server = Server(data)
    seen = f"this version is started again: “{short(server.error())}”"
    salvage_and_restore(data, "an upgrade has failed after it wrote a later format", seen, keep_log=False)


def move():
    start = time.monotonic()
    to = WORK / "restored"
    shutil.rmtree(to, ignore_errors=True)
    data = copy()
    pipe = f"{ROOST} backup --data {data} --to - | {ROOST} restore - --data {to}"
    subprocess.run(["sh", "-c", pipe], check=True, capture_output=True, env=clean())
    took = time.monotonic() - start
    server = Server(to)
    counts = server.counts()
    row("moving to another machine", "–", "stop; `roost backup --data DIR --to - \\| ssh OTHER roost restore - --data DIR`; start there", f"{seconds(took)} + {seconds(server.took)}", loss(counts), counts == COUNTS)
    server.stop()


DISASTERS = (lost_disk, flipped_bits, deleted_files, damaged_archive, full_disk, wrong_clock, forgotten_key, failed_upgrade, move)


def main():
    global ROOST, WORK, ORIGINAL, ARCHIVE, BACKUP, USERS, COUNTS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("roost")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--only", choices=[disaster.__name__ for disaster in DISASTERS])
    given = parser.parse_args()
    ROOST, WORK, USERS = given.roost, given.folder.absolute(), given.users
    WORK.mkdir(parents=True, exist_ok=True)
    ORIGINAL, ARCHIVE, BACKUP = WORK / "original", WORK / "archive", WORK / "BACKUP"
    print("| disaster | what is seen | way out | time | lost |\n|---|---|---|---|---|", flush=True)
    if not (WORK / "counts.json").exists():
        make_original()
    COUNTS = tuple(json.loads((WORK / "counts.json").read_text()))
    size = sum(path.stat().st_size for path in ORIGINAL.rglob("*") if path.is_file())
    print(f"\n{COUNTS[0]} users, {COUNTS[1]} posts, {COUNTS[2]} follows, {size >> 20} MiB\n", file=sys.stderr)
    for disaster in DISASTERS:
        if given.only in (None, disaster.__name__):
            disaster()
    if FAILED:
        raise SystemExit("FAILED: " + "; ".join(FAILED))


main()
