"""Real profile stores, on loopback: Pyroscope and Parca."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from service import ROOT, TARGET

# Where the programs are, packed, if no variable names one: HEAPRAY_PYROSCOPE, HEAPRAY_PARCA.
PACKED = ROOT.parent / "shared" / "tools" / "servers"
# Pyroscope waits for its own parts for some twenty seconds.
DEADLINE_SECONDS = 180


def program(name: str) -> Path:
    """The server of that name. Without it, the check is skipped."""
    named = os.environ.get(f"HEAPRAY_{name.upper()}")
    if named:
        return Path(named)
    packed = PACKED / f"{name}.xz"
    if not packed.exists():
        absent(f"{name}, because neither HEAPRAY_{name.upper()} nor {packed.parent.name}/{packed.name} is there")
    content = packed.read_bytes()
    unpacked = TARGET / "tools" / "servers" / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        draft = unpacked.with_suffix(f".{os.getpid()}")
        draft.write_bytes(lzma.decompress(content))
        draft.chmod(0o755)
        draft.rename(unpacked)
    return unpacked


def absent(reason: str) -> NoReturn:
    """Skips the check and says so. Unlike what a package has, CI may lack a server: pytest's summary counts it there."""
    if not os.environ.get("CI"):
        print(f"skipped: {reason}")
    pytest.skip(reason)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Server:
    """A server that runs in a directory of its own. Ends by `with`."""

    directory: Path
    port: int = field(default_factory=free_port)

    def command(self) -> list[str | Path]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    def __enter__(self):
        command = self.command()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log = self.directory / "server.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], cwd=self.directory, stdout=log, stderr=log)
        try:
            self.until(self.is_ready, "the server is ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()

    def request(self, path: str, body: bytes | None = None, kind: str = "application/octet-stream") -> tuple[int, bytes]:
        """Status and body of the answer; 0 if there is none."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, {"Content-Type": kind} if body else {})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return 0, b""

    def until(self, is_so, what: str):
        """Waits for something true, and returns it."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (found := is_so()):
            log = self.log.read_text(errors="replace")[-5_000:]
            assert self.process.poll() is None, f"the server ended: {log}"
            assert time.monotonic() < deadline, f"{what}: not within {DEADLINE_SECONDS} s. {log}"
            time.sleep(0.2)
        return found


@dataclass
class Pyroscope(Server):
    """Grafana's store, with the older or the newer of its storages."""

    storage: str = "v2"

    def command(self) -> list[str | Path]:
        rings = ["compactor.ring.instance-", "distributor.ring.instance-", "overrides-exporter.ring.instance-"]
        rings += ["query-frontend.instance-", "query-scheduler.ring.instance-", "store-gateway.sharding-ring.instance-"]
        rings += ["ingester.lifecycler.", "segment-writer.lifecycler."]
        internal = free_port()
        return [
            program("pyroscope"),
            "-target=all",
            f"-architecture.storage={self.storage}",
            "-server.http-listen-address=127.0.0.1",
            f"-server.http-listen-port={self.port}",
            "-server.grpc-listen-address=127.0.0.1",
            f"-server.grpc-listen-port={internal}",
            f"-metastore.address=127.0.0.1:{internal}",
            f"-query-backend.address=127.0.0.1:{internal}",
            "-memberlist.bind-addr=127.0.0.1",
            "-memberlist.advertise-addr=127.0.0.1",
            f"-memberlist.bind-port={free_port()}",
            "-segment-writer.min-ready-duration=0s",
            "-usage-stats.enabled=false",
            "-config.show_banner=false",
            "-self-profiling.disable-push=true",
            *[f"-{ring}addr=127.0.0.1" for ring in rings],
            *(["-write-path=ingester"] if self.storage == "v1" else []),
        ]

    def is_ready(self) -> bool:
        return self.request("/ready")[0] == 200

    def ingest(self, name: str, profile: bytes) -> tuple[int, str]:
        now = int(time.time())
        query = urllib.parse.urlencode({"name": name, "format": "pprof", "from": now - 15, "until": now})
        status, answer = self.request(f"/ingest?{query}", profile)
        return status, answer.decode(errors="replace")

    def ask(self, method: str, **body) -> dict:
        now = int(time.time() * 1000)
        question = json.dumps({"start": now - 3_600_000, "end": now + 60_000} | body).encode()
        status, answer = self.request(f"/querier.v1.QuerierService/{method}", question, "application/json")
        return json.loads(answer) if status == 200 else {}

    def flame_graph(self, name: str, kind: str) -> tuple[int, list[str]]:
        """The total of one sample type of a service, and the functions in its flame graph."""
        select = f'{{service_name="{name}"}}'
        graph = self.ask("SelectMergeStacktraces", profileTypeID=kind, labelSelector=select, maxNodes=10_000).get(
            "flamegraph", {}
        )
        return int(graph.get("total", 0)), graph.get("names", [])


@dataclass
class Parca(Server):
    """Polar Signals' store, which scrapes `target`."""

    target: str = ""
    # Lines of the profile's configuration, such as its path.
    profile: str = "enabled: true"

    def command(self) -> list[str | Path]:
        self.directory.mkdir(parents=True, exist_ok=True)
        others = "\n".join(f"        {kind}: {{enabled: false}}" for kind in ["goroutine", "block", "mutex", "process_cpu"])
        configuration = self.directory / "parca.yaml"
        configuration.write_text(f"""\
object_storage:
  bucket:
    type: FILESYSTEM
    config: {{directory: ./data}}
scrape_configs:
  - job_name: sample
    scrape_interval: 2s
    scrape_timeout: 5s
    static_configs:
      - targets: ["{self.target}"]
    profiling_config:
      pprof_config:
        memory: {{{self.profile}}}
{others}
""")
        return [
            program("parca"),
            f"--http-address=127.0.0.1:{self.port}",
            f"--config-path={configuration}",
            "--storage-active-memory=67108864",
            "--log-level=warn",
        ]

    def is_ready(self) -> bool:
        return self.request("/api/profiles/types")[0] == 200

    def get(self, path: str, **query) -> dict:
        status, answer = self.request(f"{path}?{urllib.parse.urlencode(query)}")
        return json.loads(answer) if status == 200 else {}
