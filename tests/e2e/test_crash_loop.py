"""A hundred containers that are killed, one after the other, two at a time, on one volume: no report is lost, start and stop
answer, and what is on the disk stays within its bound."""

from __future__ import annotations

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

import pytest

from container import Container, Manifest, needs_root, root_file_system  # noqa: F401: a fixture is used by its name
from dockerfile import read
from running import DEADLINE_SECONDS, Answer
from service import LEAKED_BYTES, PROFILER

LIVES = 100
AT_ONCE = 2
# Far more than all reports need, and less than what each life leaves, if that stays: nothing is evicted.
KEEP_BYTES = 64 << 20
LOG_LIMIT = 8 << 20
MANIFEST = Manifest.read()
ENVIRONMENT = MANIFEST.environment | {
    "MEMRAY_PROFILER_LOG_LIMIT": str(LOG_LIMIT),
    "MEMRAY_PROFILER_KEEP": "1000",
    "MEMRAY_PROFILER_TRIGGER_KEEP": "100",
    "MEMRAY_PROFILER_KEEP_BYTES": str(KEEP_BYTES),
    "MEMRAY_PROFILER_SIGUSR2": "true",
}
# One call of the sample's: so much must be live in what is recovered.
LEAK = LEAKED_BYTES // 3


@dataclass
class Owed:
    """What the next process must have: a report that was acknowledged, or a session whose log is on the disk."""

    started: str
    ended: str | None  # None: any moment
    why: str

    def is_in(self, reports: list[dict]) -> bool:
        return any(
            report["started"] == self.started
            and self.ended in (None, report["ended"])
            and report["live"]["bytes"] >= LEAK
            for report in reports
        )


@dataclass
class Volume:
    """The folder that outlives the containers, and what is owed from it."""

    path: Path
    owed: list[Owed] = field(default_factory=list)
    most_bytes: int = 0

    def bytes(self) -> int:
        """What it takes on the disk."""
        total = 0
        for folder, _, files in os.walk(self.path):
            for name in files:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
                except FileNotFoundError:
                    pass
        self.most_bytes = max(self.most_bytes, total)
        return total

    def missing(self, container: Container) -> list[Owed]:
        owed = list(self.owed)
        reports = reports_of(container)
        return [report for report in owed if not report.is_in(reports)]

    def given_up(self) -> int:
        """Logs whose recovery was cut short three times: they are left for the command line."""
        return sum(len(list(self.path.glob(f"*.{mark}.spool"))) for mark in ["try3", "kept"])


def reports_of(container: Container) -> list[dict]:
    return well(container.get(f"{PROFILER}/reports"), container).json()


def asked(container: Container, action: str) -> dict:
    """The state that `start` or `stop` answers with: neither may fail, whatever others left in the directory."""
    return well(container.post(f"{PROFILER}/{action}"), container).json()


def well(answer: Answer, container: Container) -> Answer:
    assert answer.status == 200, (answer, container.output())
    return answer


class InTheBackground:
    """A request whose answer may never come: its container is killed meanwhile."""

    def __init__(self, request):
        self.answer = None
        self.thread = threading.Thread(target=self.run, args=[request])
        self.thread.start()

    def run(self, request) -> None:
        try:
            self.answer = request()
        except (OSError, HTTPException):
            pass

    def end(self, container: Container) -> Answer | None:
        self.thread.join()
        return well(self.answer, container) if self.answer else None


@dataclass
class Life:
    """One container, from its start to its violent end. What it does meanwhile is named by one of the methods."""

    container: Container
    volume: Volume
    chance: random.Random

    def wait(self, most: float) -> None:
        time.sleep(self.chance.uniform(0, most))

    def record(self) -> str:
        """Leaks, and has the log's last block written: from here on the session must not be lost. Its start."""
        self.container.perform(1)
        well(self.container.get(f"{PROFILER}/summary"), self.container)
        started = self.container.get(f"{PROFILER}/status").json()["recording_since"]
        self.volume.owed.append(Owed(started, None, "its log was on the disk"))
        return started

    def stop(self, started: str) -> None:
        self.acknowledged(started, asked(self.container, "stop"))

    def acknowledged(self, started: str, status: dict) -> None:
        assert status["report"], status
        self.volume.owed.append(Owed(started, status["report"]["taken"], "`stop` said that it is there"))

    def ends_while_it_records(self) -> None:
        self.record()

    def ends_while_a_report_is_written(self) -> None:
        started = self.record()
        stop = InTheBackground(lambda: self.container.post(f"{PROFILER}/stop"))
        self.wait(0.1)
        self.container.kill()
        if answer := stop.end(self.container):
            self.acknowledged(started, answer.json())

    def ends_after_a_stop(self) -> None:
        self.stop(self.record())

    def ends_in_its_second_session(self) -> None:
        self.stop(self.record())
        asked(self.container, "start")
        self.record()

    def ends_while_pages_are_made(self) -> None:
        self.record()
        page = InTheBackground(lambda: self.container.get(f"{PROFILER}/flamegraph"))
        file = InTheBackground(lambda: self.container.get(f"{PROFILER}/report"))
        self.wait(0.1)
        self.container.kill()
        page.end(self.container)
        file.end(self.container)

    def ends_while_it_shuts_down(self) -> None:
        self.record()
        self.container.signal(15)
        self.wait(0.1)

    def ends_by_itself(self) -> None:
        started = self.record()
        code = self.container.terminate()
        assert code == 0, (code, self.container.output())
        self.volume.owed.append(Owed(started, None, "it ended cleanly"))

    def ends_while_the_flight_recorder_writes(self) -> None:
        self.record()
        self.container.signal(12)
        self.wait(0.1)


KINDS = [
    Life.ends_while_it_records,
    Life.ends_while_a_report_is_written,
    Life.ends_after_a_stop,
    None,  # killed while it starts
    Life.ends_while_a_report_is_written,
    Life.ends_in_its_second_session,
    Life.ends_while_pages_are_made,
    Life.ends_while_it_shuts_down,
    Life.ends_by_itself,
    Life.ends_while_the_flight_recorder_writes,
]


def live_once(number: int, root: Path, directory: Path, volume: Volume) -> None:
    """One life, and what must be so in each: what was acknowledged is listed, what is on the disk is within its bound."""
    chance = random.Random(number)
    kind = KINDS[number // AT_ONCE % len(KINDS)]
    container = Container(directory / str(number), ENVIRONMENT, root=root, volumes={MANIFEST.volume: volume.path})
    container.start()
    try:
        if kind is None:
            time.sleep(chance.uniform(0, 0.1))
        else:
            container.wait_until_ready()
            asked(container, "start")
            missing = [owed for owed in volume.missing(container) if owed.ended]
            assert not missing, (missing, container.output())
            kind(Life(container, volume, chance))
    finally:
        container.__exit__()
    assert volume.bytes() <= KEEP_BYTES, sorted(path.name for path in volume.path.rglob("*"))


@pytest.mark.parametrize("made_by", ["an engine", "a cluster"])
def test_what_a_killed_container_recorded_is_there_in_the_next_one(tmp_path, made_by):
    root = root_file_system(tmp_path / "root")
    volume = Volume(tmp_path / "volume")
    volume.path.mkdir()
    user, group = (int(number) for number in read().image.user.split(":"))
    if made_by == "an engine":
        os.chown(volume.path, user, group)
    else:
        # `fsGroup` of a cluster.
        os.chown(volume.path, 0, group)
        volume.path.chmod(0o2777)
    with ThreadPoolExecutor(AT_ONCE) as lanes:
        lives = [lanes.submit(live_once, number, root, tmp_path, volume) for number in range(LIVES // 2)]
        try:
            for life in lives:
                life.result()
        except BaseException:
            lanes.shutdown(cancel_futures=True)
            raise
    with Container(tmp_path / "last", ENVIRONMENT, root=root, volumes={MANIFEST.volume: volume.path}) as last:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len(missing := volume.missing(last)) > volume.given_up() or any(owed.ended for owed in missing):
            assert time.monotonic() < deadline, (missing, last.output())
            time.sleep(0.1)
        asked(last, "stop")
        for report in reports_of(last):
            answer = last.get(f"{PROFILER}/reports/{report['id']}/report")
            assert answer.status == 200 and len(answer.body) == report["report_bytes"], (report, answer.status)
        assert last.terminate() == 0
    print(f"at most {volume.most_bytes / (1 << 20):.1f} MiB on the disk, {len(volume.owed)} reports and sessions owed")
