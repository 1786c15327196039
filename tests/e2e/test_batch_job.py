"""The parts of `sample/batch-job`, each with one command as `docs/batch-job.md` has them, and the tools that open what they write."""

from __future__ import annotations

import base64
import json
import os
import pstats
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from memray_cli import memray
from running import DEADLINE_SECONDS
from service import TARGET

JOB = TARGET / "release" / "batch-job"
MIB = 1 << 20


def run(part: str, directory: Path, limit_kib: int | None = None, code: int = 0, **variables: str) -> str:
    """What the part printed, started in `directory`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MEMRAY_", "COMPSS_"))}
    command = [str(JOB), part]
    if limit_kib is not None:
        command = ["bash", "-c", f'ulimit -v {limit_kib}; exec "$@"', "bash", *command]
    done = subprocess.run(
        command, cwd=directory, env=clean | variables, capture_output=True, text=True, timeout=DEADLINE_SECONDS
    )
    assert done.returncode == code, f"{part}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def mprof(*arguments: str, directory: Path) -> str:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("mprof")), *arguments],
        cwd=directory,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_whole_job_leaves_tables_and_a_memory_log(tmp_path: Path) -> None:
    printed = run("all", tmp_path, MEMRAY_PROFILER_MEMORY_LOG="true", MEMRAY_PROFILER_MEMORY_CHILDREN="both")
    assert "Line #    Mem usage    Increment  Occurrences   Line Contents" in printed
    assert re.search(r"MiB +1 +let text = stations::text\(lines\);", printed)
    assert re.search(r"parts\.rs median \d+\.\d MiB", printed)
    (log,) = tmp_path.glob("mprofile_*.dat")
    functions = [line.split()[1] for line in log.read_text().splitlines() if line.startswith("FUNC ")]
    assert functions == ["batch_job.load.load", "batch_job.compute", "batch_job.parts.median"]
    assert log.name in mprof("list", directory=tmp_path)
    peaks = mprof("peak", log.name, directory=tmp_path)
    child = re.search(r"Child \d+\s+([\d.]+) MiB", peaks)
    assert child and float(child[1]) > 64, peaks
    for name, options in [("plot.png", []), ("flame.png", ["--flame"]), ("slope.png", ["--slope"])]:
        mprof("plot", *options, "--output", name, log.name, directory=tmp_path)
        assert (tmp_path / name).stat().st_size > 10_000


def test_what_loading_keeps_is_told_to_the_byte(tmp_path: Path) -> None:
    printed = run("heap", tmp_path, MEMRAY_PROFILER="true", MEMRAY_PROFILER_DIR=str(tmp_path))
    table, _, held = printed.partition("load_exactly: ")
    assert "Allocations" in table
    extended = next(line for line in table.splitlines() if "measurements.extend" in line)
    assert re.search(r"\b40000 +40000\b", extended), extended
    assert re.search(r"\d+ bytes +40000 blocks .*load\.rs:\d+", held), held


def test_a_scope_has_a_report_of_its_own(tmp_path: Path) -> None:
    printed = run("scope", tmp_path)
    peak = int(re.search(r"took (\d+) bytes at its peak", printed)[1])
    # A copy of 400,000 measurements, 32 bytes each, with a string of 10, and what sorting takes besides.
    assert 400_000 * 42 <= peak < 1.6 * 400_000 * 42
    report = tmp_path / "batch-report"
    for name in ["index.html", "peak-memory.svg", "peak-memory-reversed.svg", "peak-memory.folded"]:
        assert (report / name).stat().st_size > 500, name
    assert "median" in (report / "peak-memory.svg").read_text()
    memray("flamegraph", "--output", tmp_path / "theirs.html", report / "memray-report.bin")


def test_the_profile_of_the_cpu_opens_in_pstats(tmp_path: Path) -> None:
    printed = run("cpu", tmp_path)
    assert "load_timed" in printed
    stats = pstats.Stats(str(tmp_path / "load.pstats")).stats
    cumulative = {function: entry[3] for (_, _, function), entry in stats.items()}
    loading = max(time for name, time in cumulative.items() if name.endswith("load_timed"))
    text = max(time for name, time in cumulative.items() if name.endswith("stations::text"))
    assert loading > 0 and 0.2 * loading < text <= loading


def test_the_parallel_part_leaves_a_page(tmp_path: Path) -> None:
    run("parallel", tmp_path)
    page = (tmp_path / "batch-job.html").read_text()
    packed = re.search(r'id="data"[^>]*>([^<]+)<', page)[1]
    data = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert "sum_up" in data["task_names"]
    assert {"worker-0", "worker-1"} <= {worker["name"] for worker in data["workers"]}


@pytest.mark.parametrize("code", [None, 53])
def test_a_job_without_memory_leaves_a_report(tmp_path: Path, code: int | None) -> None:
    variables = {"MEMRAY_PROFILER": "true", "MEMRAY_PROFILER_DIR": str(tmp_path)}
    if code is not None:
        variables["MEMRAY_PROFILER_OOM_EXIT_CODE"] = str(code)
    printed = run("grow", tmp_path, limit_kib=1_200_000, code=code or 1, **variables)
    held = int(re.findall(r"(\d+) MiB", printed)[-1])
    assert held > 100
    reports = sorted(tmp_path.rglob("*.bin"))
    assert reports, list(tmp_path.rglob("*"))
    names = set()
    for report in reports:
        page = tmp_path / "theirs.html"
        # Sums only, as of every report that the flight recorder writes: memray's `stats` wants the events.
        memray("flamegraph", "--force", "--output", page, report)
        names |= set(re.findall(r"batch_job::grow::\w+", page.read_text()))
    assert "batch_job::grow::cache_more" in names, names
