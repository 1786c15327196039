"""Memory by route, of the sample that is told to record it by a setting: over HTTP, in go's pprof and in memray."""

from __future__ import annotations

import re

import pytest

from go_pprof import top
from heapray_cli import heapray
from memray_cli import largest_leak
from prometheus import samples
from service import LEAKED_BYTES, PROFILER, Service, is_the_leak

ROUTE = "POST /api/v1/perform"


def test_the_route_that_leaks_is_named_by_every_tool(tmp_path):
    with Service(tmp_path, {"MEMRAY_PROFILER_BY_ROUTE": "true"}) as service:
        service.perform(3)
        table = service.get(f"{PROFILER}/stats?by=route&format=json").json()
        first, *others = table["contexts"]
        assert first["value"] == ROUTE, table
        assert first["live"]["bytes"] >= LEAKED_BYTES
        assert all(other["live"]["bytes"] < LEAKED_BYTES / 3 for other in others), table
        text = service.get(f"{PROFILER}/stats?by=route").text()
        assert text.splitlines()[1].startswith(ROUTE), text

        metrics = samples(service.get(f"{PROFILER}/metrics?routes=true").text())
        by_route = {sample.labels["route"]: sample.value for sample in metrics["heapray_route_live_bytes"]}
        assert by_route[ROUTE] >= LEAKED_BYTES
        assert by_route["(no route)"] > 0

        profile = tmp_path / "labelled.pb.gz"
        profile.write_bytes(service.get(f"{PROFILER}/pprof?labels=context").body)
        rooted = top("-sample_index=inuse_space", "-tagroot=route", "-cum", profile, directory=tmp_path)
        assert ROUTE in rooted, rooted
        focused = top("-sample_index=inuse_space", f"-tagfocus=route={ROUTE}", profile, directory=tmp_path)
        assert "leak_a_million_numbers" in focused, focused

        stacks = service.get(f"{PROFILER}/report?format=collapsed&measure=live&by=route").text()
        leaking = [line for line in stacks.splitlines() if "leak_a_million_numbers" in line]
        assert leaking and all(line.startswith(f"[{ROUTE}]") for line in leaking), leaking

        service.post(f"{PROFILER}/stop")
        report = tmp_path / "by-route.bin"
        report.write_bytes(service.get(f"{PROFILER}/report?by=route").body)
        assert is_the_leak(*largest_leak(report))

        # The report with every event opens in memray as well, and a part of it by time has the routes.
        whole = tmp_path / "whole.bin"
        whole.write_bytes(service.get(f"{PROFILER}/report").body)
        assert is_the_leak(*largest_leak(whole))
        for options in [[], ["--since", "1ms"]]:
            largest = heapray("tree", "--by", "route", "--leaks", *options, whole)
            assert f"[{ROUTE}]" in largest, largest


def test_the_shop_s_routes_are_told_apart_by_what_each_request_does(tmp_path):
    with Service(tmp_path, {"MEMRAY_PROFILER_BY_ROUTE": "true"}) as service:
        for number in range(200):
            service.get("/api/v1/quote")
            service.get(f"/api/v1/items/{number}")
            service.post("/api/v1/visits")
        table = service.get(f"{PROFILER}/stats?by=route&format=json").json()
        by_route = {row["value"]: row for row in table["contexts"]}
        quote, item, visit = (by_route[route] for route in ["GET /api/v1/quote", "GET /api/v1/items/{id}", "POST /api/v1/visits"])
        assert [row["runs"]["count"] for row in (quote, item, visit)] == [200] * 3
        # Two tables of 800 kB, a description of 20 kB, 128 events of 16 bytes.
        for row, bytes_each in [(quote, 1_600_000), (item, 20_000), (visit, 2048)]:
            assert row["runs"]["allocated_bytes"]["mean"] == pytest.approx(bytes_each, abs=4000), row
        assert quote["runs"]["most_bytes"]["most"] == pytest.approx(1_600_000, abs=10_000)
        # The server frees some of it after the response: what is live is what is left.
        assert quote["runs"]["held_bytes"]["mean"] < 2000
        assert quote["live"]["bytes"] < 200 * 10
        # 150 requests removed an item for the one that they added.
        assert item["runs"]["held_bytes"]["sum"] == pytest.approx(50 * 20_000 + 200 * 800, rel=0.1)
        assert item["live"]["bytes"] == pytest.approx(50 * 20_000, rel=0.05)
        assert visit["live"]["bytes"] == pytest.approx(200 * 2048, rel=0.05)
        assert visit["runs"]["held_bytes"]["mean"] == pytest.approx(2048, abs=2000)
        text = service.get(f"{PROFILER}/stats?by=route").text()
        (line,) = [line for line in text.splitlines() if line.startswith("POST /api/v1/visits")]
        assert re.search(r"2\.0\d\dkB$", line), text

        found = samples(service.get(f"{PROFILER}/metrics?routes=true").text())
        requests = {sample.labels["route"]: sample.value for sample in found["heapray_route_request_bytes_count"]}
        assert requests["POST /api/v1/visits"] == 200
        page = service.get(f"{PROFILER}/flamegraph")
        assert page.status == 200


def test_while_sampling_the_bytes_of_each_request_are_exact(tmp_path):
    settings = {"MEMRAY_PROFILER_BY_ROUTE": "true", "MEMRAY_PROFILER_SAMPLE": "512KiB"}
    with Service(tmp_path, settings) as service:
        for _ in range(100):
            service.get("/api/v1/quote")
        table = service.get(f"{PROFILER}/stats?by=route&format=json").json()
        (quote,) = [row for row in table["contexts"] if row["value"] == "GET /api/v1/quote"]
        assert quote["runs"]["count"] == 100
        assert quote["runs"]["allocated_bytes"]["mean"] == pytest.approx(1_600_000, abs=4000)
        assert quote["runs"]["held_bytes"] is None
