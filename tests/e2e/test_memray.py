"""The report that the sample serves, read by the memray that is on PyPI."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from memray import FileReader
from memray._memray import compute_statistics

from memray_cli import largest_leak, memray, memray_at_a_terminal
from running import DEADLINE_SECONDS
from service import LEAKED_BYTES, PROFILER, Service, is_the_leak


def after(heading: str, text: str) -> str:
    """The line below the one that ends with `heading`."""
    lines = text.splitlines()
    place = next(number for number, line in enumerate(lines) if line.endswith(heading))
    return lines[place + 1].strip()


def test_stats_names_the_leaking_line_first_by_size(leak):
    largest = after("largest allocating locations (by size):", memray("stats", leak.report))
    assert re.fullmatch(rf"- \S.*:\S*memory-leak/src/leak\.rs:{leak.line} -> 24\.000MB", largest), largest


def test_our_stats_name_the_leaking_line_first_by_size_and_among_what_is_live(leak):
    largest = after("largest allocating locations (by size):", leak.stats)
    assert largest.endswith(f"memory-leak/src/leak.rs:{leak.line} -> 24.000MB"), largest
    live = after("still-live locations (by size):", leak.stats)
    assert f"memory-leak/src/leak.rs:{leak.line}" in live and "24.000MB" in live, live


def without_names_of_modules(lines: list[str]) -> list[str]:
    """Modules of equal figures stand in the order of a hash table of memray's: only their figures are compared."""
    modules = next(number for number, line in enumerate(lines) if "allocating modules" in line)
    by_size, by_number = r"^\t- .*: (\S+ total) \| .*$", r"^\t- .*\| (.*)$"
    compared, pattern = lines[:modules], by_size
    for line in lines[modules:]:
        pattern = by_number if "by number of allocations" in line else pattern
        compared.append(re.sub(pattern, r"\1", line))
    return compared


def test_our_stats_begin_as_memrays_do(leak):
    ours, theirs = leak.stats.strip().splitlines(), memray("stats", leak.report).strip().splitlines()
    assert without_names_of_modules(ours[: len(theirs)]) == without_names_of_modules(theirs)


def test_mprof_reads_memory_over_time_and_finds_its_peak(leak, tmp_path):
    """memory_profiler's own reader: its curve is ours, and its peak is the largest reading."""
    file = tmp_path / "mprofile_20261121120000.dat"
    file.write_text(leak.mprof)
    command = [Path(sys.executable).with_name("mprof"), "peak", file]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=DEADLINE_SECONDS).stdout
    readings = [float(line.split()[1]) for line in leak.mprof.splitlines() if line.startswith("MEM ")]
    assert f"{max(readings):.3f} MiB" in told, told
    # What was leaked is resident.
    assert readings[-1] - readings[0] > 0.9 * LEAKED_BYTES / (1 << 20)


def test_totals_are_ours_to_the_byte(leak):
    statistics = compute_statistics(str(leak.report))
    reader = FileReader(str(leak.report))
    peak = sum(record.size for record in reader.get_high_watermark_allocation_records())
    leaked = list(FileReader(str(leak.report)).get_leaked_allocation_records())

    status = leak.status
    assert status["lost_events"] == 0
    assert statistics.total_num_allocations == status["allocated"]["count"]
    assert statistics.total_memory_allocated == status["allocated"]["bytes"]
    assert statistics.peak_memory_allocated == status["high_water"]["bytes"]
    assert peak == status["high_water"]["bytes"] == reader.metadata.peak_memory
    assert sum(record.size for record in leaked) == status["live"]["bytes"]
    assert sum(record.n_allocations for record in leaked) == status["live"]["count"]
    assert int(after("Total allocations:", leak.stats)) == status["allocated"]["count"]
    assert status["live"]["bytes"] >= LEAKED_BYTES


def test_the_largest_leak_is_the_leaking_line(leak):
    assert is_the_leak(*largest_leak(leak.report))


def test_stats_json_agrees_with_the_text(leak, tmp_path):
    target = tmp_path / "stats.json"
    memray("stats", "--json", "--output", target, leak.report)
    stats = json.loads(target.read_text())
    assert stats["total_num_allocations"] == leak.status["allocated"]["count"]
    assert stats["total_bytes_allocated"] == leak.status["allocated"]["bytes"]
    largest = stats["top_allocations_by_size"][0]
    assert is_the_leak(largest["location"], largest["size"]), largest


def test_tree_draws_the_leak(leak):
    drawn = memray_at_a_terminal("tree", leak.report, until="leak_a_million_numbers", then=b"q")
    assert "24.0" in drawn


def test_summary_has_the_leak(leak):
    assert "24.000MB" in memray("summary", "--max-rows", "1000", leak.report)


def test_table_has_the_leaking_line(leak, tmp_path):
    target = tmp_path / "table.html"
    memray("table", "--no-web", "--output", target, leak.report)
    assert f"memory-leak/src/leak.rs:{leak.line}" in target.read_text()


@pytest.mark.parametrize(
    "options", [[], ["--leaks"], ["--temporal"], ["--temporal", "--leaks"], ["--inverted"], ["--split-threads"]]
)
def test_flamegraph_has_the_leaking_line(leak, tmp_path, options):
    target = tmp_path / "flamegraph.html"
    memray("flamegraph", *options, "--no-web", "--output", target, leak.report)
    page = target.read_text()
    assert "memory-leak/src/leak.rs" in page and "leak_a_million_numbers" in page


def test_flamegraph_of_temporary_allocations_is_made(leak, tmp_path):
    target = tmp_path / "flamegraph.html"
    memray("flamegraph", "--temporary-allocations", "--no-web", "--output", target, leak.report)
    assert target.stat().st_size > 100_000


def test_transform_to_csv_has_the_leak(leak, tmp_path):
    target = tmp_path / "leak.csv"
    memray("transform", "csv", "--leaks", "--output", target, leak.report)
    with target.open() as file:
        sizes = [int(row["size"]) for row in csv.DictReader(file) if "memory-leak/src/leak.rs" in row["stack_trace"]]
    assert max(sizes) >= LEAKED_BYTES // 3


def test_transform_to_gprof2dot_has_the_leak(leak, tmp_path):
    target = tmp_path / "leak.json"
    memray("transform", "gprof2dot", "--output", target, leak.report)
    functions = json.loads(target.read_text())["functions"]
    assert any("memory-leak/src/leak.rs" in function["module"] for function in functions)


def test_transform_to_speedscope_has_the_leak(leak, tmp_path):
    target = tmp_path / "leak.speedscope.json"
    memray("transform", "speedscope", "--output", target, leak.report)
    profile = json.loads(target.read_text())
    frames = profile["shared"]["frames"]
    assert any(frame.get("file", "").endswith("memory-leak/src/leak.rs") for frame in frames)


def test_past_the_limit_of_the_event_log_the_report_is_aggregated_and_says_so(leak, tmp_path):
    with Service(tmp_path, {"MEMRAY_PROFILER_LOG_LIMIT": "512"}) as service:
        service.perform(3)
        service.post(f"{PROFILER}/stop")
        report = tmp_path / "memray-report.bin"
        service.curl("--output", str(report), service.url(f"{PROFILER}/report"))
        status = service.get(f"{PROFILER}/status").json()
        stats = service.get(f"{PROFILER}/stats").text()

    assert status["log_given_up"], status
    assert status["log_given_up"] in stats
    reader = FileReader(str(report))
    leaked = list(reader.get_leaked_allocation_records(merge_threads=True))
    assert sum(record.size for record in leaked) == status["live"]["bytes"]
    peak = sum(record.size for record in FileReader(str(report)).get_high_watermark_allocation_records())
    assert peak == status["high_water"]["bytes"]
    page = tmp_path / "flamegraph.html"
    memray("flamegraph", "--leaks", "--no-web", "--output", page, report)
    memray("table", "--no-web", "--output", tmp_path / "table.html", report)
    assert "24.000MB" in memray("summary", "--max-rows", "1000", report)
    assert "leak_a_million_numbers" in page.read_text()
    assert is_the_leak(*largest_leak(report))
