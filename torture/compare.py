#!/usr/bin/env python3
"""Compares what heapray and heaptrack say of two runs of one program: one row of a Markdown table.

compare.py NAME HEAPTRACK_RAW HEAPRAY_JSON PERCENT

HEAPTRACK_RAW is what `heaptrack --raw` wrote. It is replayed here: Debian's heaptrack 1.4 takes all memory there is for
the symbols of a Rust program. HEAPRAY_JSON is a report by `heapray convert json`. Fails if a figure differs by more than
PERCENT and the fixed part that the start of a process costs (README.md says which).
"""

import json
import subprocess
import sys
from collections import Counter

FIXED_COUNT, FIXED_BYTES = 100, 100_000
# More sizes than these would be a list of what threads did in another order.
FEW = 16


def heaptrack(path):
    """How often each size was allocated, and the largest sum of live bytes.

    `+ SIZE TRACE ADDRESS` and `- ADDRESS`, in hexadecimal; all other lines are stacks, modules and times.
    """
    text = subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True, text=True).stdout
    blocks, sizes, live, peak = {}, Counter(), 0, 0
    for line in text.splitlines():
        if line.startswith("+ "):
            size, _, address = line[2:].split(" ")
            size = int(size, 16)
            blocks[address] = size
            sizes[size] += 1
            live += size
            peak = max(peak, live)
        elif line.startswith("- "):
            live -= blocks.pop(line[2:], 0)
    return sizes, peak


def heapray(path):
    """The same, what was mapped among it; then how many mappings there were, their bytes, and those at the peak."""
    with open(path) as file:
        report = json.load(file)
    conditions = report["conditions"]
    assert conditions["lost_events"] == 0 and not report["sizes"]["rounded"], conditions
    nothing = {"count": 0, "bytes": 0}
    mapped = next((row["allocated"] for row in report["allocators"] if row["allocator"] == "MMAP"), nothing)
    at_peak = sum(row.get("high_water", nothing)["bytes"] for row in report["table"] if row["allocator"] == "MMAP")
    sizes = Counter(dict(map(tuple, report["sizes"]["counts"])))
    assert sum(size * count for size, count in sizes.items()) == report["totals"]["allocated"]["bytes"]
    return sizes, report["totals"]["high_water"]["bytes"], mapped, at_peak


name, percent = sys.argv[1], float(sys.argv[4])
sizes, peak, mapped, mapped_at_peak = heapray(sys.argv[3])
other_sizes, other_peak = heaptrack(sys.argv[2])
# What both see: heaptrack knows nothing of `mmap`.
ours = (
    sizes.total() - mapped["count"],
    sum(size * count for size, count in sizes.items()) - mapped["bytes"],
    peak - mapped_at_peak,
)
theirs = (other_sizes.total(), sum(size * count for size, count in other_sizes.items()), other_peak)

cells, wrong = [name], []
for what, fixed, our, their in zip(("allocations", "bytes", "peak"), (FIXED_COUNT, FIXED_BYTES, FIXED_BYTES), ours, theirs):
    cells += [f"{our:,}", f"{their:,}", f"{our - their:+,}"]
    if abs(our - their) > fixed + their * percent / 100:
        wrong.append(f"{name}: {what} differ by more than they may")
differing = {size: sizes[size] - other_sizes[size] for size in sizes.keys() | other_sizes.keys()}
differing = {size: count for size, count in sorted(differing.items()) if count}
few = ", ".join(f"{count:+} of {size:,}" for size, count in differing.items())
cells.append(few if len(differing) <= FEW else f"{len(differing)} sizes")
print("| " + " | ".join(cells) + " |")
sys.exit("\n".join(wrong) or None)
