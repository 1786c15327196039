"""Memory by route, of the sample that is told to record it by a setting: over HTTP, in go's pprof and in memray."""

from __future__ import annotations

from go_pprof import top
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
