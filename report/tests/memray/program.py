"""A Python program for memray to record: threads, leaks, temporaries, mappings that are cut in pieces."""

import mmap
import threading

KEPT = []


def leak(size):
    KEPT.append(bytearray(size))


def churn(times):
    for n in range(times):
        bytearray(2000 + n)


def work(size):
    for n in range(200):
        leak(size + n)
        churn(3)


def deep(levels):
    if levels:
        return deep(levels - 1)
    return bytearray(70_000)


threads = [threading.Thread(target=work, args=(size,), name=f"worker-{size}") for size in (4000, 9000)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
KEPT.append(deep(40))
peak = [bytearray(1_000_000 + n) for n in range(9)]
del peak
mapping = mmap.mmap(-1, 1 << 20)
KEPT.append(mapping)
