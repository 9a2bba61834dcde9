"""Interleaved redis-benchmark of several servers, with the processor time that each spends.

measure.py [--dur interval] [--rounds 5] [--tests get:16,set:16] [--requests 300000] NAME=PATH... [redis]
Each line: test, then for each server requests/s, and microseconds of processor time per request (server, by thread).
"""
import argparse, glob, json, os, re, shutil, statistics, subprocess, sys, tempfile, time

parser = argparse.ArgumentParser()
parser.add_argument("--dur", default="interval")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--tests", default="get:16,get:1,set:16,set:1")
parser.add_argument("--requests", type=int, default=0)
parser.add_argument("--keys", default="100000")
parser.add_argument("--out", default="")
parser.add_argument("servers", nargs="+")
args = parser.parse_args()
scratch = tempfile.mkdtemp(dir=os.environ.get("TMPDIR"))
nice = ["nice", "-n", "-10"]

def times(pid):
    """Nanoseconds on a processor, by thread name."""
    found = {}
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            name = open(task + "/comm").read().strip()
            found[name] = found.get(name, 0) + int(open(task + "/schedstat").read().split()[0])
        except OSError:
            pass
    return found

class Server:
    def __init__(self, number, spec):
        self.name, _, path = spec.partition("=")
        self.port = 7100 + number
        data = f"{scratch}/{self.name}"
        os.mkdir(data)
        if spec == "redis":
            command = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "yes",
                       "--appendfsync", "always" if args.dur == "always" else "everysec", "--dir", data]
        else:
            command = [path, "serve", "--open", "--listen", f"127.0.0.1:{7200 + number}",
                       "--redis-listen", f"127.0.0.1:{self.port}", "--durability", args.dur, "--data", data]
            if args.dur == "interval":
                command += ["--fsync-interval", "1s"]
        self.child = subprocess.Popen(nice + command, stdout=open(data + ".out", "w"), stderr=subprocess.STDOUT)

    def bench(self, op, pipeline, requests):
        before = times(self.child.pid)
        command = nice + ["redis-benchmark", "-p", str(self.port), "-c", "100", "-d", "32", "-r", args.keys,
                   "-n", str(requests), "-P", str(pipeline), "-t", op, "-q"]
        start = time.time()
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        text = client.stdout.read().decode()
        _, _, usage = os.wait4(client.pid, 0)
        rates = re.findall(r"([0-9.]+) requests per second", text.replace("\r", "\n"))
        after = times(self.child.pid)
        spent = {name: (after[name] - before.get(name, 0)) / requests / 1000 for name in after}
        spent = {name: us for name, us in spent.items() if us > 0.005}
        spent["client"] = (usage.ru_utime + usage.ru_stime) * 1e6 / requests
        return float(rates[-1]), spent

servers = [Server(number, spec) for number, spec in enumerate(args.servers)]
try:
    time.sleep(2)
    for server in servers:
        server.bench("set", 16, 200000)
    all_of = {}
    for test in args.tests.split(","):
        op, pipeline = test.split(":")
        pipeline = int(pipeline)
        requests = args.requests or (500000 if pipeline == 16 else 100000)
        for _ in range(args.rounds):
            row = []
            for server in servers:
                rate, spent = server.bench(op, pipeline, requests)
                all_of.setdefault((test, server.name), []).append((rate, spent))
                row.append(rate)
            print(test, args.dur, *(f"{rate:.0f}" for rate in row), flush=True)
        first = [rate for rate, _ in all_of[test, servers[0].name]]
        for server in servers:
            runs = all_of[test, server.name]
            rates = [rate for rate, _ in runs]
            ratios = [a / b for a, b in zip(rates, first)]
            names = sorted({name for _, spent in runs for name in spent})
            cpu = {name: statistics.median(spent.get(name, 0) for _, spent in runs) for name in names}
            cpu = " ".join(f"{name}={us:.3f}" for name, us in cpu.items() if us >= 0.01)
            print(f"## {test} {args.dur} {server.name}: {statistics.median(rates):.0f}/s, to {servers[0].name} "
                  f"{statistics.median(ratios):.2f} [{min(ratios):.2f} to {max(ratios):.2f}]; us: {cpu}", flush=True)
finally:
    for server in servers:
        server.child.terminate()
    for server in servers:
        server.child.wait()
    shutil.rmtree(scratch, ignore_errors=True)
