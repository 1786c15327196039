"""`heapray serve`: the live page and the reports of a stripped service, with names that are looked up here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field

import pytest

from go_pprof import top
from heapray_cli import HEAPRAY
from memray_cli import largest_leak
from page_data import packed_in
from running import Running, free_port
from service import PROFILER, SAMPLE, Service, is_the_leak
from skipping import skip

LEAKING = "leak_a_million_numbers"
TOKEN = "s3cret"


@dataclass
class Front(Running):
    """`heapray serve` before a service, with the program as it was built."""

    service: Service | None = None
    options: list[str] = field(default_factory=lambda: ["--binary", str(SAMPLE)])

    def start(self) -> None:
        self.port = free_port()
        variables = {"NO_PROXY": "*", "no_proxy": "*", "MEMRAY_PROFILER_TOKEN": TOKEN}
        variables["XDG_CACHE_HOME"] = str(self.directory / "cache")
        command = [HEAPRAY, "serve", self.service.url(""), "--listen", f"127.0.0.1:{self.port}", *self.options]
        self.launch(command, env=os.environ | variables)

    def is_ready(self) -> bool:
        return "Ctrl-C" in (self.directory / "output.log").read_text()

    def events(self) -> dict[str, object]:
        """The latest event of each name, of ten seconds."""
        found = {}
        for event in self.get(f"{PROFILER}/live").text().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in event.splitlines())
            if "event" in fields:
                found[fields["event"]] = json.loads(fields["data"])
        return found


@pytest.fixture
def stripped(tmp_path):
    """A stripped sample, which requires a token."""
    if not shutil.which("objcopy"):
        skip("objcopy is not installed")
    program = tmp_path / "stripped"
    subprocess.run(["objcopy", "--strip-all", SAMPLE, program], check=True)
    with Service(tmp_path / "sample", {"MEMRAY_PROFILER_TOKEN": TOKEN}, [program]) as service:
        service.perform(3)
        yield service


def bearer() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


def test_the_live_page_and_all_reports_have_names(tmp_path, stripped):
    without = stripped.get(f"{PROFILER}/stats", headers=bearer()).text()
    assert LEAKING not in without and "stripped+0x" in without, without
    with Front(tmp_path / "front", service=stripped) as front:
        said = (tmp_path / "front" / "output.log").read_text()
        assert "stripped: " in said and "have a line now" in said, said
        assert front.get("/").headers["location"] == f"{PROFILER}/"
        assert "<html" in front.get(f"{PROFILER}/").text()

        events = front.events()
        lines = events["top"]["lines"]
        assert LEAKING in lines[0]["function"] and lines[0]["file"].endswith("leak.rs") and lines[0]["line"] > 0, lines
        assert {"status", "curve", "now", "leaks", "reports"} <= set(events), events

        for output in ["stats", "table", "tree", "summary", "flamegraph", "flamegraph.svg", "report?format=collapsed"]:
            answer = front.get(f"{PROFILER}/{output}")
            assert answer.status == 200, answer
            shown = packed_in(answer.text()) if output == "flamegraph" else answer.text()
            # A tree abbreviates names.
            assert LEAKING in shown or "leak.rs:" in shown, output
            assert answer.headers.get("x-heapray-snapshot") == "true", answer.headers
        for name, path in [("now.pb.gz", "pprof"), ("addresses.pb.gz", "pprof?symbolize=false")]:
            (tmp_path / name).write_bytes(front.get(f"{PROFILER}/{path}").body)
        assert LEAKING in top("-symbolize=none", tmp_path / "now.pb.gz", directory=tmp_path)
        assert LEAKING not in top("-symbolize=none", tmp_path / "addresses.pb.gz", directory=tmp_path)

        # What changes something is passed on, with the token.
        stopped = front.post(f"{PROFILER}/stop")
        assert stopped.status == 200 and stopped.json()["state"] == "stopped", stopped
        report = tmp_path / "report.bin"
        report.write_bytes(front.get(f"{PROFILER}/report").body)
        assert is_the_leak(*largest_leak(report))
        [kept] = front.get(f"{PROFILER}/reports").json()
        assert LEAKING in kept["largest"]["function"], kept
        table = front.get(f"{PROFILER}/reports/{kept['id']}/table").text()
        assert LEAKING in table, table
        listed = front.events()["reports"]
        assert LEAKING in listed[0]["largest"]["function"], listed
        [bare] = stripped.get(f"{PROFILER}/reports", headers=bearer()).json()
        assert bare["largest"]["line"] == 0, bare


def test_a_page_of_a_stranger_cannot_use_the_token(tmp_path, stripped):
    with Front(tmp_path / "front", service=stripped) as front:
        for headers in [{"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}]:
            answer = front.post(f"{PROFILER}/stop", headers=headers)
            assert answer.status in (403, 421), answer
        answer = front.get(f"{PROFILER}/flamegraph", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})
        assert answer.status == 403, answer
        assert stripped.get(f"{PROFILER}/status", headers=bearer()).json()["state"] == "recording"
        # The service's own routes, and a path that leads to them.
        for path in ["/api/v1/perform", f"{PROFILER}/../../perform", f"{PROFILER}/%2e%2e/perform", "/debug/pprof/heap"]:
            assert front.post(path).status == 404, path


def test_what_is_wrong_is_said_before_the_page_is_opened(tmp_path, stripped):
    def failing(url: str, token: str = TOKEN, listen: str = "127.0.0.1:0") -> str:
        variables = {"NO_PROXY": "*", "no_proxy": "*", "MEMRAY_PROFILER_TOKEN": token}
        command = [HEAPRAY, "serve", "--listen", listen, url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ | variables)
        assert done.returncode == 1 and done.stdout == "", done
        return done.stderr

    assert "401" in failing(stripped.url(""), token="other")
    assert "refused" in failing(f"http://127.0.0.1:{free_port()}")
    assert "not heapray" in failing(stripped.url("/pub/nothing"))
    assert "--listen" in failing(stripped.url(""), listen=f"127.0.0.1:{stripped.port}")
    with Front(tmp_path / "front", service=stripped, options=["--binary", str(HEAPRAY)]) as front:
        said = (front.directory / "output.log").read_text()
        assert "is not used: its build id is" in said, said
        assert LEAKING not in front.get(f"{PROFILER}/stats").text()
    # The service is gone.
    with Front(tmp_path / "again", service=stripped) as front:
        stripped.kill()
        answer = front.get(f"{PROFILER}/stats")
        assert answer.status == 502 and stripped.url("") in answer.json()["error"], answer
