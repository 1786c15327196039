#!/usr/bin/env python3
"""Measures heap profilers by the benchmarks with which allocators and other profilers are measured.

    git clone --depth 1 https://github.com/daanx/mimalloc-bench
    git clone --depth 1 https://github.com/bloomberg/memray
    bench/others.py mimalloc-bench memray > others.md

mimalloc-bench: `cfrac`, `espresso`, `larson` and `xmalloc` on two threads, and its `redis-benchmark` run of the installed
`redis-server`. memray: three Python programs of its benchmarks. A checkout that is left out is not measured, and neither
is a profiler that is not installed:

    apt-get install heaptrack libgoogle-perftools-dev libjemalloc2 redis-server zstd
    ./scripts/install-test-tools        # memray, below target/tools

Every profiler gets the same files, unchanged, and records into a directory of its own. The CPU time is that of all its
processes, to the end of the raw recording, divided by the work that the program says it has done; heapray's includes
the report. Each profiler is compared with the same allocator without a profiler. The profilers take turns.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "target/others"
PRELOAD = ROOT / "target/torture/release/libheapray_preload.so"
PYTHON = ROOT / "target/tools/python/bin/python"
LIBRARIES = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
JEMALLOC, TCMALLOC = LIBRARIES / "libjemalloc.so.2", LIBRARIES / "libtcmalloc.so"
PORT = "7399"
# A program is ended after so many seconds, and has no figures then. What takes long is run once.
LONGEST, LONG = 240, 45

HEAPRAY = {"LD_PRELOAD": PRELOAD, "MEMRAY_PROFILER": "true", "MEMRAY_PROFILER_DIR": "{dir}"}
# Name: base of the comparison, files that it needs, environment, words before the command.
PROFILERS = {
    "off": (None, [], {}, []),
    "heapray": ("off", [PRELOAD], HEAPRAY, []),
    "heaptrack": ("off", [shutil.which("heaptrack")], {}, ["heaptrack", "-o", "{dir}/heaptrack"]),
    "memray --native": ("off", [PYTHON], {}, [PYTHON, "-m", "memray", "run", "--native", "-fqo", "{dir}/memray.bin"]),
    "jemalloc off": (None, [JEMALLOC], {"LD_PRELOAD": JEMALLOC}, []),
    "jemalloc, every allocation": (
        "jemalloc off",
        [JEMALLOC],
        {"LD_PRELOAD": JEMALLOC, "MALLOC_CONF": "prof:true,lg_prof_sample:0,prof_final:true,prof_prefix:{dir}/je"},
        [],
    ),
    "tcmalloc off": (None, [TCMALLOC], {"LD_PRELOAD": TCMALLOC}, []),
    "gperftools": (
        "tcmalloc off",
        [TCMALLOC],
        {"LD_PRELOAD": TCMALLOC, "HEAPPROFILE": "{dir}/hp", "HEAP_PROFILE_INUSE_INTERVAL": "0", "HEAP_PROFILE_ALLOCATION_INTERVAL": "0"},
        [],
    ),
    "heapray, samples": ("off", [PRELOAD], HEAPRAY | {"MEMRAY_PROFILER_SAMPLE": "512KiB"}, []),
    "jemalloc, samples": (
        "jemalloc off",
        [JEMALLOC],
        {"LD_PRELOAD": JEMALLOC, "MALLOC_CONF": "prof:true,lg_prof_sample:19,prof_final:true,prof_prefix:{dir}/je"},
        [],
    ),
}


class Workload:
    """A command, and how much work its output says that it has done."""

    def __init__(self, command, work=lambda output: 1.0, load=None):
        self.command, self.work, self.load = [str(word) for word in command], work, load
        self.is_python = self.command[0] == str(PYTHON)


def number(pattern, factor=1.0):
    return lambda output: float(re.search(pattern, output)[1]) * factor


def build(bench):
    """Compiles programs of mimalloc-bench as its CMakeLists.txt does."""
    BUILT.mkdir(parents=True, exist_ok=True)
    of_c = [path for path in sorted((bench / "cfrac").glob("*.c")) if path.name != "pfactor.c"]
    for name, compiler, sources in [
        ("cfrac", ["gcc", "-std=gnu89", "-DNOMEMOPT=1"], of_c),
        ("espresso", ["gcc", "-std=gnu89"], sorted((bench / "espresso").glob("*.c"))),
        ("larson", ["g++", "-DCPP=1"], [bench / "larson/larson.cpp"]),
        ("xmalloc", ["gcc"], [bench / "xmalloc-test/xmalloc-test.c"]),
    ]:
        subprocess.run([*compiler, "-O3", "-w", *sources, "-o", BUILT / name, "-lm", "-pthread"], check=True)


def workloads(checkouts):
    """The programs of these checkouts."""
    found = {}
    for checkout in checkouts:
        if (checkout / "bench/cfrac").exists():
            bench = checkout / "bench"
            build(bench)
            found["cfrac"] = Workload([BUILT / "cfrac", "4175764634412486014593803028771"])
            found["espresso"] = Workload([BUILT / "espresso", bench / "espresso/largest.espresso"])
            larson = [BUILT / "larson", "3", "8", "1000", "5000", "100", "4141", "2"]
            found["larson"] = Workload(larson, number(r"Throughput = *(\d+)", 3))
            # Millions of frees a second, for three seconds.
            found["xmalloc"] = Workload([BUILT / "xmalloc", "-w", "2", "-t", "3", "-s", "64"], number(r"free/sec: *([\d.]+)", 3))
            if server := shutil.which("redis-server"):
                found["redis"] = Workload([server, "--port", PORT, "--save", "", "--daemonize", "no"], load=redis)
        if (checkout / "benchmarks/benchmarking/cases").exists() and PYTHON.exists():
            for name, *arguments in [["raytrace"], ["async_tree", "io"], ["pprint_format"]]:
                case = checkout / f"benchmarks/benchmarking/cases/{name}_base.py"
                found[f"Python: {name}"] = Workload([PYTHON, case, *arguments])
    return found


def redis():
    """Loads the server as mimalloc-bench does, and ends it. Returns the requests that it has answered."""
    client = ["redis-benchmark", "-p", PORT, "-r", "1000000", "-n", "300000", "-q", "-P", "16"]
    for _ in range(100):
        if subprocess.run(["redis-cli", "-p", PORT, "ping"], capture_output=True, text=True).stdout == "PONG\n":
            break
        time.sleep(0.1)
    subprocess.run([*client, "lpush", "a", "1", "2", "3", "4", "5"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*client, "lrange", "a", "1", "5"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["redis-cli", "-p", PORT, "shutdown", "nosave"], check=True)
    return 600_000.0


def run(workload, profiler):
    """Runs a workload once. Returns CPU seconds for a unit of work, seconds for it, and the largest process in MiB."""
    _, _, environment, words = PROFILERS[profiler]
    with tempfile.TemporaryDirectory(prefix="others-") as folder, open(f"{folder}/output", "w+") as output:
        environment = {name: str(value).format(dir=folder) for name, value in environment.items()}
        command = workload.command[1:] if profiler.startswith("memray") else workload.command
        command = [str(word).format(dir=folder) for word in words] + command
        start = time.monotonic()
        child = subprocess.Popen(
            command, env=os.environ | environment, stdout=output, stderr=subprocess.DEVNULL, cwd=folder, start_new_session=True
        )
        try:
            work = workload.load() if workload.load else None
            status = None
            while status is None:
                pid, code, usage = os.wait4(child.pid, os.WNOHANG)
                if pid:
                    status = child.returncode = os.waitstatus_to_exitcode(code)
                elif time.monotonic() - start > LONGEST:
                    return None
                else:
                    time.sleep(0.005)
        finally:
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        seconds = time.monotonic() - start
        output.seek(0)
        if status != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {status}")
        work = work or workload.work(output.read())
        return (usage.ru_utime + usage.ru_stime) / work, seconds / work, usage.ru_maxrss / 1024


def measure(found, rounds):
    """Returns the runs of each workload and profiler."""
    runs, long = defaultdict(list), set()
    for _ in range(rounds):
        for name, workload in found.items():
            for profiler, (_, files, *_) in PROFILERS.items():
                of_python = profiler.startswith("memray")
                if not all(path and Path(path).exists() for path in files) or (of_python and not workload.is_python):
                    continue
                if (name, profiler) in long:
                    continue
                print(f"{name}: {profiler}", file=sys.stderr)
                start = time.monotonic()
                runs[name, profiler].append(run(workload, profiler))
                if time.monotonic() - start > LONG:
                    long.add((name, profiler))
    return runs


def table(title, found, cell):
    """Prints a table: a row for each workload, a column for each profiler."""
    profilers = [name for name, (base, *_) in PROFILERS.items() if base]
    print(f"\n{title}\n\n| | {' | '.join(profilers)} |\n|---|{'--:|' * len(profilers)}")
    for name in found:
        print(f"| `{name}` | {' | '.join(cell(name, profiler) for profiler in profilers)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=Path, metavar="CHECKOUT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="names of workloads, with commas")
    options = parser.parse_args()
    subprocess.run(
        ["cargo", "build", "--quiet", "--release", "--package", "heapray-preload"],
        check=True, cwd=ROOT / "torture", env=os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target/torture")},
    )
    found = workloads([path.resolve() for path in options.checkouts])
    if options.only:
        found = {name: found[name] for name in options.only.split(",")}
    runs = measure(found, options.rounds)

    def middle(name, profiler, part):
        of_all = runs.get((name, profiler))
        if not of_all:
            return None
        return float("inf") if None in of_all else median(one[part] for one in of_all)

    def ratio(name, profiler, part, form):
        value, base = middle(name, profiler, part), middle(name, PROFILERS[profiler][0], part)
        if value is None or base is None:
            return "–"
        return f"over {LONGEST} s" if value == float("inf") else form(value, base)

    table("CPU time for the same work, times that of the same allocator unprofiled", found,
          lambda name, profiler: ratio(name, profiler, 0, lambda value, base: f"{value / base:.2f}"))
    table("Speed, in percent of the unprofiled program", found,
          lambda name, profiler: ratio(name, profiler, 1, lambda value, base: f"{100 * base / value:.0f} %"))
    table("Largest process, and the same unprofiled, in MiB", found,
          lambda name, profiler: ratio(name, profiler, 2, lambda value, base: f"{value:.0f} ({base:.0f})"))


if __name__ == "__main__":
    main()
