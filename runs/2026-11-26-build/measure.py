"""Times of `cargo build --release --bin roost` and of a second build after a changed line, each from a clean clone: python3 measure.py CHECKOUT FOLDER RUNS

Writes builds.csv: run, what, seconds, processor seconds. The target folder is FOLDER, which is emptied before each run."""
import os, resource, shutil, subprocess, sys, time

checkout, folder, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
changed = os.path.join(checkout, "crates/feed/src/visible.rs")


def build(*arguments):
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    subprocess.run(["cargo", "build", "--quiet", *arguments], cwd=checkout, check=True, env={**os.environ, "CARGO_TARGET_DIR": folder})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.time() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(run, what, times):
    line = f"{run},{what},{times[0]:.1f},{times[1]:.1f}"
    print(line, flush=True)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "builds.csv"), "a") as file:
        file.write(line + "\n")


for run in range(1, runs + 1):
    shutil.rmtree(folder, ignore_errors=True)
    row(run, "release", build("--release"))
if "--dev" in sys.argv:
    row(1, "dev", build())
    for run in range(1, runs + 1):
        with open(changed, "a") as file:
            file.write(f"\n/// A changed line.\npub const CHANGED: u32 = {run};\n")
        row(run, "dev after a changed line in feed", build())
    subprocess.run(["git", "checkout", "--quiet", changed], cwd=checkout, check=True)
