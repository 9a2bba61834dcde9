"""Memory of a server with data: memory.py ROOST DATA [flags of serve]

Prints, after the start, after the newest posts were read, and after 100,000 users have read their home timelines twice,
what /metrics computes of the caches and what the kernel counts as anonymous memory of the process.
"""
import http.client, os, random, subprocess, sys, threading, time

PORT = 8311
NAMES = ["roost_rendered_bytes", "roost_recent_bytes", "roost_timeline_bytes", "roost_overlay_bytes",
         "roost_active_timelines"]


def get(connection, path):
    connection.request("GET", path)
    return connection.getresponse().read().decode()


def connect():
    return http.client.HTTPConnection("127.0.0.1", PORT)


def show(process, when):
    lines = dict(line.rsplit(" ", 1) for line in get(connect(), "/metrics").splitlines() if line[0] != "#")
    status = open(f"/proc/{process.pid}/status").read()
    kilobytes = int(status.split("RssAnon:")[1].split()[0])
    computed = {name: round(float(lines[name]) / (1 if "active" in name else 1e6), 1) for name in NAMES}
    print(f"{when}: {kilobytes * 1.024e-3:.0f} MB;", computed, flush=True)


def warming(process):
    folder = f"/proc/{process.pid}/task"
    return any(open(f"{folder}/{task}/comm").read().startswith("warm") for task in os.listdir(folder))


def read(users):
    connection = connect()
    for user in users:
        for _ in range(2):
            get(connection, f"/v1/users/{user}/timeline")


roost, data, *flags = sys.argv[1:]
process = subprocess.Popen([roost, "serve", "--data", data, "--listen", f"127.0.0.1:{PORT}", "--open", *flags],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while True:
    try:
        connection = connect()
        connection.request("GET", "/readyz")
        if connection.getresponse().status == 200:
            break
    except OSError:
        pass
    time.sleep(0.05)
while warming(process):
    time.sleep(0.2)
show(process, "newest posts read")
random.seed(1)
users = random.sample(range(int(os.environ.get("USERS", "1000000"))), 100_000)
threads = [threading.Thread(target=read, args=(users[first::4],)) for first in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
show(process, "100,000 homes read twice")
process.kill()
process.wait()
