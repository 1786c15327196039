"""The sample, started as a user starts it, and the few requests that the checks make."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from running import DEADLINE_SECONDS, Running, free_port

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# `scripts/symbol-modes` names other builds.
SAMPLE = Path(os.environ.get("HEAPRAY_SAMPLE", TARGET / "release" / "memory-leak"))
SOURCE = ROOT / "sample" / "memory-leak" / "src" / "leak.rs"
PROFILER = "/api/v1/profiler/memray"

# Three calls of `perform`: a million numbers of eight bytes each.
LEAKED_BYTES = 24_000_000
# What the list of lists asks for on the same line, as it grows.
SLACK_BYTES = 1_000


@dataclass
class Service(Running):
    """A running sample. Ends with `stop()`, or by `with`."""

    environment: dict[str, str] = field(default_factory=dict)
    command: list[str | Path] = field(default_factory=lambda: [SAMPLE])

    def start(self) -> None:
        self.port = free_port()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MEMRAY_", "JOB_"))}
        environment |= {"PORT": str(self.port), "MEMRAY_PROFILER": "true"}
        environment |= {"MEMRAY_PROFILER_DIR": str(self.directory / "profiler")}
        (self.directory / "profiler").mkdir(parents=True, exist_ok=True)
        environment |= self.environment
        # An empty one is unset.
        self.launch(self.command, env={name: value for name, value in environment.items() if value})

    def is_ready(self) -> bool:
        return self.get("/live").status == 200

    def perform(self, times: int) -> None:
        for _ in range(times):
            assert self.post("/api/v1/perform").status == 200

    def curl(self, *arguments: str) -> bytes:
        command = ["curl", "--silent", "--show-error", "--fail", "--noproxy", "*", *arguments]
        return subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE_SECONDS).stdout

    def terminate(self, with_signal: int = signal.SIGTERM) -> int:
        """Asks the sample to end, and returns its exit code."""
        self.process.send_signal(with_signal)
        return self.process.wait(timeout=DEADLINE_SECONDS)


def leaking_line() -> int:
    """The number of the sample's line that asks for the leaked memory."""
    lines = SOURCE.read_text().splitlines()
    found = [number for number, line in enumerate(lines, 1) if "1_000_000" in line and "vec!" in line]
    assert len(found) == 1, f"one line of {SOURCE} allocates a million numbers, not {len(found)}"
    return found[0]


def is_the_leak(place: str, size: int, calls: int = 3) -> bool:
    """Whether that is the sample's line, with all that it leaked in so many calls, and nothing else."""
    wanted = calls * LEAKED_BYTES // 3
    return place.endswith(f"memory-leak/src/leak.rs:{leaking_line()}") and wanted <= size < wanted + SLACK_BYTES
