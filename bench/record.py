#!/usr/bin/env python3
"""Records a capture with memray itself, for bench/reports.py: what memray writes, not what heapray writes for it.

    target/tools/python/bin/python bench/record.py OUT [EVENTS]

About EVENTS (10,000,000) allocations and frees of a Python program: short calls at various depths, blocks that live
briefly, some that live long, and a few that stay. Needs memray in the Python that runs it.
"""

import os
import random
import sys

from memray import FileDestination, FileFormat, Tracker

LEAKED = []


def handler(n):
    """One of a few hundred functions that call each other: `call(depth, size)` returns a block made `depth` below."""
    names = {}
    source = f"def step_{n}(next, depth, size):\n    if depth:\n        return next[depth](next, depth - 1, size)\n"
    source += "    return bytearray(size)\n"
    exec(compile(source, f"service/module_{n % 50}.py", "exec"), names)
    return names[f"step_{n}"]


def serve(requests):
    """Each request makes 20 blocks and frees most of them."""
    chance = random.Random(1)
    steps = [handler(n) for n in range(300)]
    paths = [chance.choices(steps, k=12) for _ in range(500)]
    cache = [None] * 2000
    for number in range(requests):
        path = paths[chance.randrange(len(paths))]
        for _ in range(20):
            # Beyond 512 bytes, or Python's own allocator keeps it from malloc.
            block = path[0](path, chance.randrange(1, 11), 600 + chance.randrange(2000))
            if chance.randrange(10) == 0:
                cache[chance.randrange(len(cache))] = block
        if number % 1000 == 0:
            LEAKED.append(block)


def main():
    out, events = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
    if os.path.exists(out):
        os.remove(out)
    with Tracker(destination=FileDestination(out), file_format=FileFormat.ALL_ALLOCATIONS):
        serve(events // 40)


if __name__ == "__main__":
    main()
