"""Captures as tables, read by the real DuckDB: sums, and the queries of docs/parquet.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb
import pytest

from heapray_cli import heapray
from service import LEAKED_BYTES, PROFILER, ROOT, Service

PAGE = ROOT / "docs" / "parquet.md"
LEAK = "leak_a_million_numbers"


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> Path:
    """Two captures of one service, before and after it leaked more, and one of another, as captures and as tables."""
    directory = tmp_path_factory.mktemp("parquet") / "reports"
    directory.mkdir()
    for replica, moments in [("a", [1, 3]), ("b", [1])]:
        with Service(directory.parent / f"sample-{replica}") as service:
            done = 0
            for calls in moments:
                service.perform(calls - done)
                done = calls
                capture = directory / f"{replica}{calls}.bin"
                capture.write_bytes(service.get(f"{PROFILER}/report").body)
                place = ["--service", "shop", "--replica", replica, "--row-label", "region=eu", "--row-label", "zone="]
                heapray("convert", "parquet", capture, *place, "-o", capture.with_suffix(".parquet"))
    return directory


def ask(query: str) -> list[tuple]:
    with duckdb.connect() as database:
        return database.execute(query).fetchall()


def test_the_sums_are_those_of_the_capture(reports):
    for capture in sorted(reports.glob("*.bin")):
        whole = json.loads(heapray("convert", "json", capture, "-o", "-"))["totals"]
        measures = "sum(live_bytes), sum(live_blocks), sum(high_water_bytes), sum(allocated_bytes), sum(allocations)"
        (sums,) = ask(f"SELECT {measures} FROM '{capture.with_suffix('.parquet')}'")
        expected = [whole["live"]["bytes"], whole["live"]["count"], whole["high_water"]["bytes"]]
        assert list(sums) == [*expected, whole["allocated"]["bytes"], whole["allocated"]["count"]]


def test_a_row_says_where_it_is_from_and_has_its_stack(reports):
    columns = "service, replica, labels, typeof(time), function, file, line, stack, allocator, len(thread)"
    order = "ORDER BY live_bytes DESC LIMIT 1"
    (row,) = ask(f"SELECT {columns} FROM '{reports}/a3.parquet' {order}")
    service, replica, labels, time, function, file, line, stack, allocator, thread = row
    assert (service, replica, labels) == ("shop", "a", {"region": "eu", "zone": ""})
    assert time == "TIMESTAMP WITH TIME ZONE"
    assert LEAK in function and file.endswith("src/leak.rs") and line > 0
    assert allocator and thread
    assert {"function": function, "file": file, "line": line} in stack
    assert "main" in stack[-1]["function"] or len(stack) > 10
    # Not every stack is known, and none is missing.
    ((rows, stacks),) = ask(f"SELECT count(*), count(stack) FROM '{reports}/a3.parquet'")
    assert rows == stacks > 10


def queries() -> list[str]:
    return re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_documented_columns_are_those_of_the_file(reports):
    documented = [
        name for row in re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]
    described = ask(f"DESCRIBE SELECT * FROM '{reports}/a1.parquet'")
    assert [column[0] for column in described] == documented


def test_the_documented_queries_find_the_leak_first(reports):
    most, growth, inclusive = [ask(query.replace("reports/", f"{reports}/")) for query in queries()]
    service, function, file, _, held, replicas = most[0]
    assert (service, replicas) == ("shop", 2) and LEAK in function and file.endswith("src/leak.rs")
    # 8, 24 and 8 MB in the three captures.
    assert held >= LEAKED_BYTES * 5 / 3
    replica, function, _, grown = growth[0]
    assert replica == "a" and LEAK in function
    assert grown == pytest.approx(LEAKED_BYTES * 2 / 3, rel=0.01)
    assert any(LEAK in function and held >= LEAKED_BYTES * 5 / 3 for function, held in inclusive), inclusive
