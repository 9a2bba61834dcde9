"""A stranger beside one client that floods one route (`bench flood`): one request at a time, 5 ms apart.

    BUILDS="before=PATH now=PATH" BENCH=PATH python3 strangers.py [FLOOD...]

Builds by turns, three rounds; each line: flood, build, kind, number, p50, p90, p99, most, in ms.
"""
import os, socket, subprocess, sys, tempfile, time

KEY = "key-of-the-benchmark"
BENCH = os.environ["BENCH"]
BUILDS = [pair.split("=", 1) for pair in os.environ["BUILDS"].split()]
REDIS = ["mget", "exists", "mset", "del", "set-long", "exec-mget", "exec-set"]
HTTP = ["http-recognise", "http-batch", "http-home"]


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def request(connection, method, path, body="", media="application/json"):
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:7701\r\nAuthorization: Bearer {KEY}\r\n"
    head += f"Content-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall((head + body).encode())
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, rest = data.split(b"\r\n\r\n", 1)
    length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while (len(rest) < int(length[0].split(b":")[1])) if length else not rest.endswith(b"0\r\n\r\n"):
        rest += connection.recv(65536)


def print_line(flood, build, kind, times):
    times.sort()
    at = lambda share: 1e3 * times[min(len(times) - 1, int(len(times) * share))]
    print(f"{flood:15} {build:7} {kind:5} {len(times):4} {at(.5):8.2f} {at(.9):8.2f} {at(.99):8.2f} {1e3 * times[-1]:8.2f}", flush=True)


def measure(flood, build, binary):
    with tempfile.TemporaryDirectory() as data:
        server = subprocess.Popen(
            [binary, "serve", "--data", data, "--listen", "127.0.0.1:7701", "--redis-listen",
             "127.0.0.1:7702", "--durability", "interval"],
            env=dict(os.environ, ROOST_KEY=KEY), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while b"http://" not in server.stdout.readline():
            pass
        redis, http = connect(7702), connect(7701)
        redis.sendall(command(b"AUTH", KEY.encode()))
        redis.recv(100)
        for first in range(0, 200_000, 10_000):
            words = [word for n in range(first, first + 10_000) for word in (b"k%d" % n, b"v" * 32)]
            redis.sendall(command(b"MSET", *words))
            redis.recv(100)
        lines = lambda one, count: "".join(one(n) + "\n" for n in range(count))
        batch = lambda text: request(http, "POST", "/v1/batch", text, "application/x-ndjson")
        batch(lines(lambda n: '{"op":"register","handle":"u%d"}' % n, 200))
        batch(lines(lambda n: '{"op":"follow","user":%d,"other":%d}' % (n % 200, (n % 200 + n // 200 + 1) % 200), 4_000))
        batch(lines(lambda n: '{"op":"post","user":%d,"text":"hello number %d"}' % (n % 200, n), 2_000))
        port = "7701" if flood.startswith("http") else "7702"
        flooder = subprocess.Popen([BENCH, "flood", flood, "--address", f"127.0.0.1:{port}", "--connections", "4"])
        time.sleep(0.5)
        times = {"SET": [], "GET": [], "home": []}
        start, n = time.time(), 0
        while time.time() - start < 2.5:
            for kind, ask in (
                ("SET", lambda: (redis.sendall(command(b"SET", b"x%d" % n, b"v")), redis.recv(100))),
                ("GET", lambda: (redis.sendall(command(b"GET", b"x%d" % n)), redis.recv(100))),
                ("home", lambda: request(http, "GET", f"/v1/users/{n % 200}/timeline")),
            ):
                before = time.time()
                ask()
                times[kind].append(time.time() - before)
            n += 1
            time.sleep(0.005)
        flooder.kill()
        server.kill()
        flooder.wait()
        server.wait()
        for kind, of_kind in times.items():
            print_line(flood, build, kind, of_kind)


for _ in range(3):
    for flood in sys.argv[1:] or REDIS + HTTP:
        for build, binary in BUILDS:
            measure(flood, build, binary)
