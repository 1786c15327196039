#!/usr/bin/env python3
"""Times `heapray` beside `memray` on the same captures: CPU, peak memory and the size of what is written.

    bench/reports.py target/release/heapray CAPTURE... [--memray PATH] [--runs N]

Captures are made by `cargo run --release -p heapray-cli --example many_sites OUT` (100,000 call sites),
`cargo run --release -p heapray-report --example capture_speed 10000000 OUT` (10 million events) and, by memray itself,
`target/tools/python/bin/python bench/record.py OUT` (10 million events). The tools take turns, so that a busy machine is
busy for both; of each figure the median is given. Prints a Markdown table. "refuses": memray has no such report of that
kind of capture.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

# The report, and each tool's arguments for it; OUT is the file to write.
REPORTS = {
    "flamegraph": (["flamegraph", "-f", "-o", "OUT"], ["flamegraph", "-f", "-o", "OUT"]),
    "stats": (["stats"], ["stats"]),
    "table": (["table", "-o", "OUT", "-f"], ["table", "-f", "-o", "OUT"]),
    "flamegraph --temporal": (
        ["flamegraph", "--temporal", "-f", "-o", "OUT"],
        ["flamegraph", "--temporal", "-f", "-o", "OUT"],
    ),
}

# What memray dies of where it has no such report of this kind of capture.
REFUSAL = "NotImplementedError"


def run(command):
    """CPU seconds and peak MiB of a command, or nothing if it refuses; only the child's memory counts."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(write, 2)
        os.execvp(command[0], command)
    os.close(write)
    said = os.fdopen(read, "rb").read()
    _, status, usage = os.wait4(pid, 0)
    if status:
        said = said.decode(errors="replace")
        if REFUSAL in said:
            return None
        raise SystemExit(f"{command} fails: {said}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(tool, arguments, capture, out):
    command = [tool, *(str(out) if part == "OUT" else part for part in arguments), capture]
    return run(command)


def median(rows, column):
    """Of what a tool did in each run; nothing where it refuses."""
    return statistics.median(row[column] for row in rows) if all(rows) else None


def pair(figures, form):
    """Both tools' figures, and how many times the second is the first."""
    ours, theirs = (f"{figure:{form}}" if figure is not None else "refuses" for figure in figures)
    ratio = f"{figures[1] / figures[0]:.1f}×" if None not in figures else "–"
    return f"{ours} | {theirs} | {ratio}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("heapray")
    parser.add_argument("captures", nargs="+")
    parser.add_argument("--memray", default="target/tools/python/bin/memray")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    version = subprocess.run([options.memray, "--version"], capture_output=True, text=True, check=True).stdout
    print(f"memray {version.strip()}, {os.cpu_count()} CPUs, median of {options.runs} runs\n")
    print("| capture | report | heapray CPU s | memray CPU s | faster | heapray MiB | memray MiB | less | heapray kB | memray kB |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        outs = [pathlib.Path(folder, name) for name in ("heapray.html", "memray.html")]
        for capture in options.captures:
            for report, arguments in REPORTS.items():
                rows = ([], [])
                for _ in range(options.runs):
                    for row, tool, words, out in zip(rows, (options.heapray, options.memray), arguments, outs):
                        row.append(measure(tool, words, capture, out))
                cpu, memory = ([median(row, column) for row in rows] for column in (0, 1))
                sizes = [f"{out.stat().st_size / 1000:.0f}" if out.exists() else "–" for out in outs]
                print(
                    f"| {pathlib.Path(capture).name} | {report} | {pair(cpu, '.3f')} | {pair(memory, '.0f')} "
                    f"| {' | '.join(sizes)} |",
                    flush=True,
                )
                for out in outs:
                    out.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
