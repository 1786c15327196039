"""One leak, captured once, for all checks that only look at its report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from service import PROFILER, Service, leaking_line


@dataclass(frozen=True)
class Leak:
    """Three calls of `perform`, recorded from the first instruction on, stopped and downloaded with curl."""

    report: Path
    status: dict
    stats: str
    flamegraph: str
    mprof: str
    line: int


@pytest.fixture(scope="session")
def leak(tmp_path_factory) -> Leak:
    directory = tmp_path_factory.mktemp("leak")
    with Service(directory) as service:
        service.perform(3)
        service.curl("--request", "POST", service.url(f"{PROFILER}/stop"))
        report = directory / "memray-report.bin"
        service.curl("--output", str(report), service.url(f"{PROFILER}/report"))
        return Leak(
            report=report,
            status=service.get(f"{PROFILER}/status").json(),
            stats=service.get(f"{PROFILER}/stats").text(),
            flamegraph=service.get(f"{PROFILER}/flamegraph").text(),
            mprof=service.get(f"{PROFILER}/report?format=mprof").text(),
            line=leaking_line(),
        )
