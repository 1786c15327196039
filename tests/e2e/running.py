"""Programs that the checks run: those that end, and servers on loopback that are started, waited for and asked."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Self

# Nothing here takes this long; a check that does has failed.
DEADLINE_SECONDS = 60


def run(*command: str | Path, cwd: Path | None = None, text: str = "", environment: dict[str, str] | None = None) -> str:
    """What a program printed, errors too; its failure fails the test."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))} failed:\n{done.stdout[-20_000:]}"
    return done.stdout


# Below the ports that the system gives to clients. Each worker of pytest has some of its own, so that no other one takes a port
# before its server does.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
PORTS = itertools.cycle(range(15_000 + 2_000 * WORKER, 17_000 + 2_000 * WORKER))


def free_port() -> int:
    """A port that no server has, and that is not given out again soon."""
    while True:
        port = next(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


@dataclass
class Answer:
    """What a server said."""

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
class Running:
    """A server with a directory of its own, in which its output is, too. Ends by `with`."""

    directory: Path

    # Between two looks at something that is waited for, and until it must be there.
    pause_seconds = 0.02
    deadline_seconds = DEADLINE_SECONDS

    def start(self) -> None:
        """Starts it by `launch`."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_ready(self) -> None:
        self.until(self.is_ready, "it is ready")

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.kill()
        self.log.close()

    def launch(self, command: list[str | Path], **options) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log = (self.directory / "output.log").open("wb")
        self.process = subprocess.Popen(list(map(str, command)), stdout=self.log, stderr=self.log, **options)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def request(self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> Answer:
        request = urllib.request.Request(self.url(path), body, method=method, headers=headers or {})
        if method == "POST" and body is None:
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

    def until(self, found, what: str, seconds: float | None = None):
        """What `found` gives, as soon as it gives something."""
        seconds = seconds or self.deadline_seconds
        deadline = time.monotonic() + seconds
        while True:
            try:
                if answer := found():
                    return answer
            except OSError:
                pass  # not there yet, or not any more
            assert self.process.poll() is None, f"{what}: it ended: {self.output()}"
            assert time.monotonic() < deadline, f"{what}: not within {seconds} s: {self.output()}"
            time.sleep(self.pause_seconds)

    def output(self) -> str:
        self.log.flush()
        return (self.directory / "output.log").read_text(errors="replace")
