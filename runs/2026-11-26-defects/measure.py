"""What one client can do to others, measured against the same server before it does: python3 measure.py ROOST OUT

Each experiment has a server of its own on loopback, default settings. Times in milliseconds, memory in MiB.
"""
import http.client, json, os, random, socket, statistics, subprocess, sys, tempfile, threading, time

ROOST, OUT = os.path.abspath(sys.argv[1]), sys.argv[2]
RUNS, SECONDS = 3, 5
rows = []


class Server:
    def __init__(self, *settings, data=None):
        self.data = data or tempfile.mkdtemp(prefix="defects-")
        began = time.time()
        self.process = subprocess.Popen(
            [ROOST, "serve", "--listen", "127.0.0.1:0", "--redis-listen", "127.0.0.1:0", "--data", self.data, *settings],
            env={**os.environ, "ROOST_KEY": KEY, "ROOST_LOG": "info"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.http = self.redis = None
        while self.http is None or "recovered" not in line:
            line = self.process.stdout.readline()
            assert line, "the server ended"
            if '"starting"' in line:
                starting = json.loads(line)
                self.http, self.redis = (int(starting[name].split(":")[1]) for name in ("http", "redis"))
        while '"serving"' not in line:
            line = self.process.stdout.readline()
        self.started_s = time.time() - began
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def end(self):
        self.process.terminate()
        self.process.wait()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def rss(self):
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def cpu_ms(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


KEY = "k" * 40
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, method, path, body=None, headers=HEADERS):
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        text = response.read()
        return response.status, text

    def batch(self, lines):
        for at in range(0, len(lines), 5000):
            body = "".join(json.dumps(line) + "\n" for line in lines[at:at + 5000])
            status, text = self.call("POST", "/v1/batch", body, {**HEADERS, "Content-Type": "application/x-ndjson"})
            bad = [line for line in text.split(b"\n") if line and not line.startswith(b'{"ok":true')]
            assert status == 200 and not bad, (status, bad[:2])


def load(port, users, posts_each):
    client = Client(port)
    client.batch([{"op": "register", "handle": f"u{n}"} for n in range(users)])
    client.batch([{"op": "follow", "user": n, "other": (n + k) % users} for n in range(users) for k in range(1, 21)])
    client.batch([{"op": "post", "user": n % users, "text": f"number {n}: today the weather was kinder than the forecast"}
                  for n in range(users * posts_each)])
    return client


def latencies(seconds, request):
    """Milliseconds of requests at 200 per second at most, by one client."""
    out, end = [], time.time() + seconds
    while time.time() < end:
        began = time.perf_counter()
        request()
        out.append((time.perf_counter() - began) * 1000)
        time.sleep(max(0, 0.005 - (time.perf_counter() - began)))
    return out


def p99(values):
    return sorted(values)[int(len(values) * 0.99)]


def record(experiment, what, values):
    rows.append({"experiment": experiment, "what": what, "runs": [round(v, 2) for v in values]})
    values = sorted(values)
    print(f"{experiment}: {what}: {statistics.median(values):.2f} [{values[0]:.2f} to {values[-1]:.2f}]", flush=True)


class Flood:
    """Threads that repeat a request until the end of the block."""
    def __init__(self, count, make):
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(make, n), daemon=True) for n in range(count)]
        self.done = 0

    def work(self, make, n):
        request = make(n)
        while not self.stop.is_set():
            try:
                request()
                self.done += 1
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
                request = make(n)

    def __enter__(self):
        [thread.start() for thread in self.threads]
        time.sleep(0.5)
        return self

    def __exit__(self, *_):
        self.stop.set()
        [thread.join(60) for thread in self.threads]


def public_timeline():
    server = Server("--anonymous-reads", "--registrations", "open")
    client = load(server.http, 1000, 200)
    def median(path, headers):
        times = []
        for _ in range(80):
            began = time.perf_counter()
            status, text = client.call("GET", path, None, headers)
            times.append((time.perf_counter() - began) * 1000)
            assert status == 200, (path, status, text)
        return statistics.median(times)
    public, home = [], []
    for _ in range(RUNS):
        public.append(median("/api/v1/timelines/public?local=true&limit=20", {}))
        home.append(median("/v1/users/1/timeline?limit=20", HEADERS))
    record("public timeline with 200,000 posts", "median time of a read", public)
    record("public timeline with 200,000 posts", "of a home timeline", home)
    server.end()


def redis(port, *parts):
    connection = socket.create_connection(("127.0.0.1", port))
    def send(*parts):
        out = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)
        connection.sendall(out)
        return connection.recv(100)
    assert send(b"AUTH", KEY.encode()).startswith(b"+OK")
    return send


def large_values():
    server = Server("--anonymous-reads", "--registrations", "open")
    client = load(server.http, 200, 20)
    send = redis(server.redis)
    for n in range(24):
        answer = send(b"SET", b"large%d" % n, os.urandom(16 << 20))
        assert answer.startswith(b"+OK"), answer
    time.sleep(8)
    before = server.rss()
    with Flood(8, lambda _: (lambda c: lambda: c.call("GET", "/api/v1/timelines/public?local=true", None, {}))(Client(server.http))) as flood:
        time.sleep(4)
    record("24 values of 16 MiB", "memory before reads of the public timeline", [before])
    record("24 values of 16 MiB", f"memory after {flood.done} reads of it", [server.rss()])
    server.end()


def recognitions():
    server = Server()
    client = load(server.http, 1000, 10)
    drawing = json.loads(client.call("GET", "/v1/samples/6")[1])["sample"]
    body = json.dumps({"samples": [drawing] * 1000})
    home = lambda: client.call("GET", f"/v1/users/{random.randrange(1000)}/timeline")
    alone, beside = [], []
    for _ in range(RUNS):
        alone.append(p99(latencies(SECONDS, home)))
        with Flood(64, lambda _: (lambda c: lambda: c.call("POST", "/v1/recognitions", body))(Client(server.http))):
            beside.append(p99(latencies(SECONDS, home)))
    record("64 clients who recognize 1,000 drawings", "p99 of homes alone", alone)
    record("64 clients who recognize 1,000 drawings", "p99 of homes beside them", beside)
    server.end()


def deletion():
    server = Server()
    client = Client(server.http)
    users = 100_000
    client.batch([{"op": "register", "handle": f"u{n}"} for n in range(users)])
    client.batch([{"op": "follow", "user": n, "other": k} for n in range(4, users) for k in range(4)])
    client.batch([{"op": "post", "user": n % 2000, "text": f"number {n}"} for n in range(20_000)])
    home = lambda: client.call("GET", f"/v1/users/{random.randrange(4, 2000)}/timeline")
    other, before, after = Client(server.http), [], []
    for n in range(RUNS):
        latencies(2, home)
        before.append(statistics.median(latencies(3, home)))
        status, text = other.call("DELETE", f"/v1/users/{n}")
        assert status < 300, (status, text)
        after.append(statistics.median(latencies(3, home)))
    record("deletion of a user with 100,000 followers", "median of homes in the 3 s before", before)
    record("deletion of a user with 100,000 followers", "median of homes in the 3 s after", after)
    server.end()


def long_values():
    server = Server()
    client = load(server.http, 100, 10)
    post = lambda: client.call("POST", f"/v1/users/{random.randrange(100)}/posts", json.dumps({"text": "hello"}))
    alone, beside = [], []
    for _ in range(RUNS):
        alone.append(p99(latencies(SECONDS, post)))
        def make(_):
            send, value = redis(server.redis), os.urandom(16 << 20)
            def change():
                began = time.time()
                send(b"SET", b"large", value)
                time.sleep(max(0, 1 / 14 - (time.time() - began)))
            return change
        with Flood(1, make) as flood:
            beside.append(p99(latencies(SECONDS, post)))
    record("one client who sets 16 MiB up to 14 times per second", "p99 of posts alone", alone)
    record("one client who sets 16 MiB up to 14 times per second", "p99 of posts beside it", beside)
    with Flood(3, make) as flood:
        time.sleep(5)
    server.kill()
    again = Server(data=server.data)
    record("after kill -9 while three clients set 16 MiB", "seconds until the server listens", [again.started_s])
    again.end()


for experiment in (public_timeline, large_values, recognitions, deletion, long_values):
    if len(sys.argv) < 4 or experiment.__name__ in sys.argv[3:]:
        try:
            experiment()
        except Exception as error:
            print(experiment.__name__, "failed:", repr(error)[:600], flush=True)
os.makedirs(OUT, exist_ok=True)
json.dump(rows, open(os.path.join(OUT, "summary.json"), "w"), indent=1)
