"""Records captures of a few kilobytes with memray, of every kind, into a folder: seeds for the fuzzer."""

import mmap
import sys
import threading

import memray


def work(kept):
    for size in range(100, 1000, 300):
        kept.append(bytearray(size))
        bytearray(5000)


def record(path, **options):
    destination = memray.FileDestination(path, compress_on_exit=False)
    kept = []
    with memray.Tracker(destination=destination, **options):
        thread = threading.Thread(target=work, args=(kept,))
        thread.start()
        thread.join()
        mapping = mmap.mmap(-1, 1 << 16)
        work(kept)
        mapping.close()


folder = sys.argv[1]
record(f"{folder}/memray-all")
record(f"{folder}/memray-native", native_traces=True)
record(f"{folder}/memray-objects", trace_python_allocators=True)
record(f"{folder}/memray-aggregated", file_format=memray.FileFormat.AGGREGATED_ALLOCATIONS)
