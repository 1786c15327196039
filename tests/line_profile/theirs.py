"""memory_profiler's own table of readings that somebody else took.

Standard input: JSON with `file`, `first` and `count` of the function's lines, `precision`, and `readings`: the lines as
control left them, each with the bytes read then. Its tracer is driven with the events that Python would send.
"""

import json
import sys
from types import SimpleNamespace

import memory_profiler

job = json.load(sys.stdin)
script = iter([bytes for _, bytes in job["readings"]])
memory_profiler._get_memory = lambda *_, **__: next(script) / 2**20


class Code:
    co_filename = job["file"]


code = Code()
profiler = memory_profiler.LineProfiler(backend="psutil")
profiler._original_trace_function = None
lines = range(job["first"], job["first"] + job["count"])
profiler.code_map._toplevel.append((job["file"], code, lines))
profiler.code_map[code] = {}

left = [line for line, _ in job["readings"]]
events = ["call"] + ["line"] * (len(left) - 1)
for event, line in zip(events, left):
    profiler.trace_memory_usage(SimpleNamespace(f_code=code, f_lineno=line), event, None)
profiler.trace_memory_usage(SimpleNamespace(f_code=code, f_lineno=left[-1]), "return", None)
memory_profiler.show_results(profiler, precision=job["precision"])
