"""The sample, started as a user starts it, and the few requests that the checks make."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SAMPLE = TARGET / "release" / "memory-leak"
SOURCE = ROOT / "sample" / "memory-leak" / "src" / "leak.rs"
PROFILER = "/api/v1/profiler/memray"

# Three calls of `perform`: a million numbers of eight bytes each.
LEAKED_BYTES = 24_000_000
# What the list of lists asks for on the same line, as it grows.
SLACK_BYTES = 1_000

# Nothing here takes this long; a check that does has failed.
DEADLINE_SECONDS = 60


@dataclass
class Answer:
    """What the service said."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self):
        return json.loads(self.body)

    def text(self) -> str:
        return self.body.decode()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


@dataclass
class Service:
    """A running sample. Ends with `stop()`, or by `with`."""

    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    command: list[str | Path] = field(default_factory=lambda: [SAMPLE])

    def __enter__(self) -> Service:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log = (self.directory / "service.log").open("wb")
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MEMRAY_", "JOB_"))
        }
        environment |= {"PORT": str(self.port), "MEMRAY_PROFILER": "true"}
        environment |= {"MEMRAY_PROFILER_DIR": str(self.directory / "profiler")}
        (self.directory / "profiler").mkdir(exist_ok=True)
        environment |= self.environment
        # An empty one is unset.
        environment = {name: value for name, value in environment.items() if value}
        self.process = subprocess.Popen(self.command, env=environment, stdout=self.log, stderr=self.log)
        self._wait_until_live()
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def _wait_until_live(self) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            assert self.process.poll() is None, f"the sample ended: {self.output()}"
            try:
                if self.get("/live").status == 200:
                    return
            except OSError:
                pass
            assert time.monotonic() < deadline, f"the sample did not come up: {self.output()}"
            time.sleep(0.02)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def request(self, method: str, path: str, headers: dict[str, str] | None = None) -> Answer:
        request = urllib.request.Request(self.url(path), method=method, headers=headers or {})
        if method == "POST":
            request.data = b"{}"
            request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(NoRedirect, urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=DEADLINE_SECONDS) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read())

    def get(self, path: str, **options) -> Answer:
        return self.request("GET", path, **options)

    def post(self, path: str, **options) -> Answer:
        return self.request("POST", path, **options)

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

    def output(self) -> str:
        self.log.flush()
        return (self.directory / "service.log").read_text()


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
