"""Prints what memray finds in captures, one JSON object a line: its statistics (by its own command), the rows of its
views and tables, temporary allocations by threshold.

usage: figures.py CAPTURE...
"""

import contextlib
import html
import io
import json
import os
import sys
import tempfile

from memray import FileFormat, FileReader
from memray.commands import main as memray
from memray.reporters.table import TableReporter

THRESHOLDS = (0, 1, 5)


def spell(record):
    frames = [f"{function} {file}:{line}" for function, file, line in record.stack_trace()]
    return " > ".join(reversed(frames))


def rows(records, merged):
    return [[record.n_allocations, record.size, "" if merged else record.thread_name, spell(record)] for record in records]


def table(records):
    reporter = TableReporter.from_snapshot(records, memory_records=[], native_traces=False, merge_threads=False)
    return [[row["n_allocations"], row["size"], "", html.unescape(row["stack_trace"])] for row in reporter.data]


def stats(path):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        if memray(["stats", path]):
            return None, None
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "stats.json")
        with contextlib.redirect_stdout(io.StringIO()):
            memray(["stats", "--json", "-f", "-o", out, path])
        with open(out, encoding="utf-8") as file:
            return text.getvalue(), json.load(file)


def figures(path):
    with FileReader(path) as reader:
        meta = reader.metadata
        views = {
            "high_water": lambda merge: reader.get_high_watermark_allocation_records(merge_threads=merge),
            "live": lambda merge: reader.get_leaked_allocation_records(merge_threads=merge),
        }
        found = {"path": path, "peak": meta.peak_memory, "pid": meta.pid, "native": meta.has_native_traces}
        every_event = meta.file_format == FileFormat.ALL_ALLOCATIONS
        found["aggregated"] = not every_event
        found["apart"] = {name: rows(records(False), False) for name, records in views.items()}
        found["merged"] = {name: rows(records(True), True) for name, records in views.items()}
        found["table"] = {name: table(records(False)) for name, records in views.items()}
        found["temporary"] = {}
        if every_event:
            for threshold in THRESHOLDS:
                records = reader.get_temporary_allocation_records(merge_threads=False, threshold=threshold)
                found["temporary"][threshold] = rows(records, False)
    try:
        found["text"], found["json"] = stats(path) if every_event else (None, None)
    except ValueError:  # a capture without allocations: memray's histogram has no smallest size
        found["text"] = found["json"] = None
    return found


for capture in sys.argv[1:]:
    print(json.dumps(figures(capture)))
