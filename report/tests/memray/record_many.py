"""Records captures of many kinds with memray: every workload with every option. Prints the path of each.

usage: record_many.py DIRECTORY
"""

import json
import mmap
import sys
import threading

from memray import FileDestination, FileFormat, Tracker

KEPT = []


def nothing():
    pass


def leaks():
    for n in range(300):
        KEPT.append(bytearray(3000 + 7 * n))


def temporaries():
    for n in range(2000):
        bytearray(1500 + n)


def recursion(levels=60):
    if levels:
        block = bytearray(900 + levels)
        recursion(levels - 1)
        return block
    return bytearray(50_001)


def in_threads():
    def work(size):
        blocks = [bytearray(size + n) for n in range(150)]
        KEPT.append(blocks[::3])

    threads = [threading.Thread(target=work, args=(1000 * n,), name=f"worker-{n}") for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def mappings():
    maps = [mmap.mmap(-1, (n + 1) << 16) for n in range(12)]
    for one in maps[::2]:
        one.close()
    KEPT.append(maps[1])


def growing_lists():
    lists = [[] for _ in range(5)]
    for n in range(20_000):
        lists[n % 5].append(n)
    KEPT.append(lists[0])


def documents():
    text = json.dumps({f"key {n}": list(range(n % 50)) for n in range(500)})
    KEPT.append(json.loads(text))


def two_peaks():
    first = [bytearray(100_000 + n) for n in range(20)]
    del first
    second = [bytearray(100_000 + n) for n in range(20)]
    KEPT.append(second.pop())


def many_events():
    for n in range(300_000):
        bytearray(600 + n % 4000)


WORKLOADS = [nothing, leaks, temporaries, recursion, in_threads, mappings, growing_lists, documents, two_peaks]
OPTIONS = {
    "plain": {},
    "pymalloc": {"trace_python_allocators": True},
    "native": {"native_traces": True},
    "aggregated": {"file_format": FileFormat.AGGREGATED_ALLOCATIONS},
}


def record(path, workload, compress=True, **options):
    destination = FileDestination(path, overwrite=True, compress_on_exit=compress)
    with Tracker(destination=destination, memory_interval_ms=1, **options):
        workload()
    KEPT.clear()
    print(path)


def main(directory):
    for workload in WORKLOADS:
        for name, options in OPTIONS.items():
            record(f"{directory}/{workload.__name__}-{name}.bin", workload, **options)
    record(f"{directory}/threads-bare.bin", in_threads, compress=False)
    record(f"{directory}/threads-native-aggregated.bin", in_threads, native_traces=True,
           file_format=FileFormat.AGGREGATED_ALLOCATIONS)
    record(f"{directory}/many-events.bin", many_events)


main(sys.argv[1])
