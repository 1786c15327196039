"""The `heapray` command beside a running service, and after one that was killed."""

from __future__ import annotations

import signal
import time

from heapray_cli import heapray
from memray_cli import largest_leak, memray
from service import PROFILER, Service, is_the_leak


def test_fetch_stops_the_service_and_saves_what_memray_opens(tmp_path):
    report = tmp_path / "memray-report.bin"
    with Service(tmp_path) as service:
        service.perform(3)
        heapray("fetch", service.url("/pub/job/memory-leak/0.1.0"), "-o", report)
        assert service.get(f"{PROFILER}/status").json()["state"] == "stopped"
    assert is_the_leak(*largest_leak(report))
    first = heapray("table", "--leaks", report).splitlines()[4]
    assert first.startswith("24.000MB") and "leak_a_million_numbers at" in first


def test_a_killed_service_leaves_what_recover_makes_a_report_of(tmp_path):
    with Service(tmp_path) as service:
        service.perform(3)
        service.post(f"{PROFILER}/mark?name=leaked")
        # A block of the event log is written at least once a second.
        time.sleep(1.5)
        service.terminate(signal.SIGKILL)
    (spool,) = (tmp_path / "profiler").glob("*.spool")
    report = tmp_path / "recovered.bin"
    heapray("recover", spool, "-o", report)
    assert is_the_leak(*largest_leak(report))
    assert "leak_a_million_numbers" in memray("stats", report)
    assert "leaked at " in heapray("info", report)
