#!/usr/bin/env python3
"""Runs a program of known truth inside of Python under memray, and prints the call sites that memray shows as widest.

memray_names.py LIBRARY NAME SECONDS RECORDING

LIBRARY is the crate's example `library`. The first line is the widest call site of `memray flamegraph --leaks`. The second
is that of `memray flamegraph`, which shows the high-water mark.
"""

import ctypes
import re
import sys
from collections import Counter

import memray


def widest(records):
    """The call site with the most bytes. One call site may have several records: for `malloc`, and for `realloc`."""
    widths = Counter()
    for record in records:
        for function, _, _ in record.native_stack_trace(1):
            if site := re.search(r"leak_programs::sites::([a-z_]+)", function):
                widths[site[1]] += record.size
    return widths.most_common(1)[0][0]


library, name, seconds, recording = sys.argv[1:]
run_program = ctypes.CDLL(library).run_program
run_program.argtypes, run_program.restype = [ctypes.c_char_p, ctypes.c_double], ctypes.c_bool
# What `memray run --native` does.
with memray.Tracker(recording, native_traces=True):
    if not run_program(name.encode(), float(seconds)):
        sys.exit(f"no program has the name {name}")
reader = memray.FileReader(recording)
print(widest(reader.get_leaked_allocation_records(merge_threads=True)))
print(widest(reader.get_high_watermark_allocation_records(merge_threads=True)))
