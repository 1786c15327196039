"""`heapray fleet` with replicas that run."""

from __future__ import annotations

import json
from contextlib import ExitStack

from memray import FileReader

from heapray_cli import heapray
from memray_cli import memray
from running import free_port
from service import PROFILER, SLACK_BYTES, Service

CALL_BYTES = 8_000_000
LEAK = "leak_a_million_numbers"


def is_about(size: int, calls: int) -> bool:
    """Whether so many calls leak that; the list of what is leaked is on the same line."""
    return 0 <= size - calls * CALL_BYTES <= SLACK_BYTES


def test_the_replica_that_leaks_more_stands_out_and_all_reports_become_one(tmp_path):
    calls = {"shop-1": 1, "shop-2": 1, "shop-3": 5}
    merged, page, targets = tmp_path / "all.bin", tmp_path / "fleet.html", tmp_path / "targets.json"
    with ExitStack() as running:
        groups = []
        for name, times in calls.items():
            service = running.enter_context(Service(tmp_path / name))
            service.perform(times)
            labels = {"pod": name, "__metrics_path__": f"{PROFILER}/metrics"}
            groups.append({"targets": [service.url("").removeprefix("http://")], "labels": labels})
        groups.append({"targets": [f"127.0.0.1:{free_port()}"], "labels": {"pod": "shop-4"}})
        targets.write_text(json.dumps(groups))
        said = heapray("fleet", "--file", targets, "--json", "--merge", merged, "--html", page)
        text = heapray("fleet", "--file", targets)
        # Nothing was stopped.
        assert service.get(f"{PROFILER}/status").json()["state"] == "recording"
    fleet = json.loads(said[said.rindex("\n{") :])
    first, *others = fleet["replicas"]
    assert first["name"] == "shop-3" and first["outlier"]["live"] and first["outlier"]["rss"]
    assert first["top"]["function"].endswith(LEAK) and is_about(first["top"]["live_bytes"], 5)
    assert not any(replica["outlier"]["live"] for replica in others)
    assert [silent["name"] for silent in fleet["silent"]] == ["shop-4"]
    line = fleet["comparison"]["lines"][0]
    assert line["function"].endswith(LEAK) and is_about(line["more_bytes"], 4) and line["share"] > 0.9
    assert "3 of 4 replicas answered." in text and "shop-3 holds" in text and LEAK in text
    assert "shop-3" in page.read_text() and "<script" not in page.read_text()
    held: dict[str, int] = {}
    with FileReader(merged) as reader:
        for record in reader.get_leaked_allocation_records(merge_threads=False):
            if record.size >= CALL_BYTES:
                replica = record.thread_name.partition("/")[0]
                held[replica] = held.get(replica, 0) + record.size
    assert all(is_about(held[name], times) for name, times in calls.items()), held
    graph = tmp_path / "memray.html"
    memray("flamegraph", "--leaks", "-o", graph, merged)
    assert LEAK in graph.read_text()
