"""Real profile stores, on loopback: Pyroscope and Parca."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import time
import urllib.parse
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from running import Answer, Running, free_port
from service import ROOT, TARGET
from skipping import skip_even_in_ci

# Where the programs are, packed, if no variable names one: HEAPRAY_PYROSCOPE, HEAPRAY_PARCA.
PACKED = ROOT.parent / "shared" / "tools" / "servers"

# Parca's name of the live bytes.
LIVE = "memory:inuse_space:bytes:space:bytes"


def program(name: str) -> Path:
    """The server of that name. Without it, the check is skipped."""
    named = os.environ.get(f"HEAPRAY_{name.upper()}")
    if named:
        return Path(named)
    packed = PACKED / f"{name}.xz"
    if not packed.exists():
        skip_even_in_ci(f"{name}, because neither HEAPRAY_{name.upper()} nor {packed.parent.name}/{packed.name} is there")
    content = packed.read_bytes()
    unpacked = TARGET / "tools" / "servers" / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        draft = unpacked.with_suffix(f".{os.getpid()}")
        draft.write_bytes(lzma.decompress(content))
        draft.chmod(0o755)
        draft.rename(unpacked)
    return unpacked


@dataclass
class Store(Running):
    """A profile store."""

    pause_seconds = 0.2
    # Pyroscope waits for its own parts for some twenty seconds.
    deadline_seconds = 180

    def start(self) -> None:
        self.port = free_port()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.launch(self.command(), cwd=self.directory)

    def command(self) -> list[str | Path]:
        raise NotImplementedError


@dataclass
class Pyroscope(Store):
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
            f"-compaction-worker.temp-dir={self.directory}",
            "-usage-stats.enabled=false",
            # Names for profiles without any, from debug files that it was sent; it asks nobody else.
            "-symbolizer.enabled=true",
            "-symbolizer.symbol-ref-trees-enabled=true",
            "-symbolizer.debuginfod-url=",
            "-config.show_banner=false",
            "-self-profiling.disable-push=true",
            *[f"-{ring}addr=127.0.0.1" for ring in rings],
            *(["-write-path=ingester"] if self.storage == "v1" else []),
        ]

    def is_ready(self) -> bool:
        return self.get("/ready").status == 200

    def ingest(self, name: str, profile: bytes) -> Answer:
        now = int(time.time())
        query = urllib.parse.urlencode({"name": name, "format": "pprof", "from": now - 15, "until": now})
        return self.post(f"/ingest?{query}", body=profile, headers={"Content-Type": "application/octet-stream"})

    def ask(self, method: str, **body) -> dict:
        now = int(time.time() * 1000)
        question = json.dumps({"start": now - 3_600_000, "end": now + 60_000} | body).encode()
        headers = {"Content-Type": "application/json"}
        answer = self.post(f"/querier.v1.QuerierService/{method}", body=question, headers=headers)
        return answer.json() if answer.status == 200 else {}

    def flame_graph(self, name: str, kind: str) -> tuple[int, list[str]]:
        """The total of one sample type of a service, and the functions in its flame graph."""
        select = f'{{service_name="{name}"}}'
        graph = self.ask("SelectMergeStacktraces", profileTypeID=kind, labelSelector=select, maxNodes=10_000).get(
            "flamegraph", {}
        )
        return int(graph.get("total", 0)), graph.get("names", [])

    def live_points(self, name: str, kind: str) -> list[int]:
        """The values of one sample type of a service over time."""
        select = f'{{service_name="{name}"}}'
        found = self.ask("SelectSeries", profileTypeID=kind, labelSelector=select, step=1, groupBy=[])
        return [int(float(point["value"])) for one in found.get("series", []) for point in one["points"]]


@dataclass
class Parca(Store):
    """Polar Signals' store, which scrapes `target`."""

    target: str = ""
    # Lines of the profile's configuration, such as its path.
    profile: str = "enabled: true"

    def command(self) -> list[str | Path]:
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
            f"--debuginfo-cache-dir={self.directory}",
            "--log-level=warn",
        ]

    def is_ready(self) -> bool:
        return self.get("/api/profiles/types").status == 200

    def ask(self, path: str, **query) -> dict:
        answer = self.get(f"{path}?{urllib.parse.urlencode(query)}")
        return answer.json() if answer.status == 200 else {}

    def live_points(self, select: str = "{}") -> list[dict]:
        """The live bytes over time, oldest first."""
        now = time.time()
        span = {"start": instant(now - 600), "end": instant(now + 60), "limit": 10}
        found = self.ask("/api/profiles/query_range", query=f"{LIVE}{select}", **span)
        return [point for series in found.get("series", []) for point in series["samples"]]

    def live_functions(self, point: dict, select: str = "{}") -> str:
        """The functions with live bytes at one of these points, as JSON."""
        query = {"single.query": f"{LIVE}{select}", "single.time": point["timestamp"]}
        query |= {"mode": "MODE_SINGLE_UNSPECIFIED", "reportType": "REPORT_TYPE_TOP"}
        return json.dumps(self.ask("/api/profiles/query", **query))


def instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
