"""How long a SET of another client takes while one client loads posts by batch.

usage: beside.py ROUNDS SECONDS BINARY... ; the binaries take turns
"""
import os, socket, statistics, subprocess, sys, tempfile, threading, time, http.client, json

KEY = "key-of-the-benchmark"
rounds, seconds, binaries = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]


def free():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def batch(client, body):
    client.request("POST", "/v1/batch", body, {"Authorization": f"Bearer {KEY}", "Content-Type": "application/x-ndjson"})
    answer = client.getresponse().read()
    assert b'"ok":false' not in answer, answer[:200]


def run(binary):
    with tempfile.TemporaryDirectory(dir=".") as data:
        http_port, redis_port = free(), free()
        environment = {"ROOST_KEY": KEY, "ROOST_LOG": "error", "PATH": os.environ["PATH"]}
        server = subprocess.Popen([binary, "serve", "--listen", f"127.0.0.1:{http_port}", "--redis-listen", f"127.0.0.1:{redis_port}", "--data", data],
                                  env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(200):
                try:
                    client = http.client.HTTPConnection("127.0.0.1", http_port)
                    client.request("GET", "/readyz")
                    answer = client.getresponse()
                    if answer.read() is not None and answer.status == 200:
                        break
                except OSError:
                    pass
                time.sleep(0.05)
            users = "".join(json.dumps({"op": "register", "handle": f"u{n}"}) + "\n" for n in range(1000))
            batch(client, users)
            text = "today the weather was kinder than the forecast, so we went out and read on."
            posts = "".join(json.dumps({"op": "post", "user": n % 1000, "text": f"{n} {text}"}) + "\n" for n in range(10_000)).encode()
            loaded, end, load = [0], [False], threading.Event()

            def loader():
                mine = http.client.HTTPConnection("127.0.0.1", http_port)
                load.wait()
                while not end[0]:
                    batch(mine, posts)
                    loaded[0] += 10_000

            thread = threading.Thread(target=loader)
            thread.start()
            redis = socket.create_connection(("127.0.0.1", redis_port))
            redis.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            redis.sendall(command(b"AUTH", KEY.encode()))
            redis.recv(100)

            def sets(for_seconds):
                times, start = [], time.perf_counter()
                while time.perf_counter() - start < for_seconds:
                    before = time.perf_counter()
                    redis.sendall(command(b"SET", b"stranger", b"v" * 32))
                    assert redis.recv(100) == b"+OK\r\n"
                    times.append((time.perf_counter() - before) * 1e3)
                    time.sleep(0.02)
                times.sort()
                return times[len(times) // 2], times[len(times) * 99 // 100]

            idle = sets(seconds / 2)
            load.set()
            time.sleep(1)
            before, at = loaded[0], time.perf_counter()
            beside = sets(seconds)
            rate = (loaded[0] - before) / (time.perf_counter() - at)
            end[0] = True
            thread.join()
            return idle, beside, rate
        finally:
            server.kill()
            server.wait()


results = {binary: [] for binary in binaries}
for _ in range(rounds):
    for binary in binaries:
        idle, beside, rate = run(binary)
        results[binary].append((idle, beside, rate))
        print(f"{binary}: idle p50 {idle[0]:.1f} p99 {idle[1]:.1f} ms; beside p50 {beside[0]:.1f} p99 {beside[1]:.1f} ms; {rate:.0f} posts/s", flush=True)
for binary, found in results.items():
    middle = lambda of: statistics.median(of(one) for one in found)
    print(f"{binary}, medians: idle p99 {middle(lambda one: one[0][1]):.1f} ms; beside p50 {middle(lambda one: one[1][0]):.1f}, p99 {middle(lambda one: one[1][1]):.1f} ms; {middle(lambda one: one[2]):.0f} posts/s")
