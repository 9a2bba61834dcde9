"""Processor time of the server for 30,000 reads of a home timeline with 20 posts, two builds by turns: python3 server.py ROOST ROOST [ROUNDS]

Writes server.csv: round, build, milliseconds of processor time for 1,000 requests. Needs `ab`."""
import csv, os, subprocess, sys, time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../2026-11-26-defects"))
builds, rounds = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 5
sys.argv = ["", builds[0], "/tmp/none", "none"]
import measure

rows, servers = [], []
for build in builds:
    measure.ROOST = os.path.abspath(build)
    server = measure.Server()
    measure.load(server.http, 200, 50)
    servers.append(server)
for number in range(rounds):
    for build, server in zip(builds, servers):
        before = server.cpu_ms()
        subprocess.run(["ab", "-q", "-k", "-c", "16", "-n", "30000", "-H", f"Authorization: Bearer {measure.KEY}",
                        f"http://127.0.0.1:{server.http}/v1/users/1/timeline?limit=20"], check=True, stdout=subprocess.DEVNULL)
        rows.append((number, build.split("/")[-2], round((server.cpu_ms() - before) / 30, 2)))
        print(*rows[-1], flush=True)
for server in servers:
    server.end()
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "server.csv"), "a") as file:
    csv.writer(file).writerows(rows)
