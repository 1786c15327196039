"""Prints what memray itself finds in a capture: totals, then each call stack of each view.

usage: sums.py CAPTURE
"""

import sys

from memray import AllocatorType, FileFormat, FileReader


def spell(record):
    frames = [f"{function} {file}:{line}" for function, file, line in record.stack_trace()]
    return " > ".join(reversed(frames))


def main(path):
    with FileReader(path) as reader:
        meta = reader.metadata
        print("peak", meta.peak_memory)
        print("command", meta.command_line)
        print("pid", meta.pid)
        views = {
            "high_water": lambda merge: reader.get_high_watermark_allocation_records(merge_threads=merge),
            "live": lambda merge: reader.get_leaked_allocation_records(merge_threads=merge),
        }
        if meta.file_format == FileFormat.ALL_ALLOCATIONS:
            views["temporary"] = lambda merge: reader.get_temporary_allocation_records(merge_threads=merge)
        for name, records in views.items():
            for merge in (True, False):
                count = size = 0
                for record in records(merge):
                    count += record.n_allocations
                    size += record.size
                    thread = "" if merge else record.thread_name
                    print("row", name, "merged" if merge else "apart", record.n_allocations, record.size,
                          f"{thread}@{spell(record)}", sep="\t")
                print("sum", name, "merged" if merge else "apart", count, size, sep="\t")
        snapshots = list(reader.get_memory_snapshots())
        print("snapshots", len(snapshots))
        if meta.file_format == FileFormat.ALL_ALLOCATIONS:
            _, by_interval = reader.get_temporal_high_water_mark_allocation_records()
            print("temporal", max(by_interval, default=0))
            frees = (AllocatorType.FREE, AllocatorType.MUNMAP, AllocatorType.PYMALLOC_FREE)
            blocks = [r for r in reader.get_allocation_records() if AllocatorType(r.allocator) not in frees]
            print("allocated", len(blocks), sum(block.size for block in blocks))


main(sys.argv[1])
