"""The image of `Dockerfile`, as far as it can be had without a container engine: the sample with nothing but the
libraries it is linked with, a root file system that is read-only, a `tmpfs` at /tmp, and a user without rights.

It needs root to be made; elsewhere the checks are skipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from memray_cli import largest_leak
from service import LEAKED_BYTES, PROFILER, SAMPLE, Service, is_the_leak

USER = "65532"
PROGRAM = "usr/local/bin/memory-leak"


@pytest.fixture(scope="module", autouse=True)
def needs_root():
    if os.geteuid() != 0:
        reason = "a read-only root file system can only be made by root"
        assert not os.environ.get("CI"), reason
        print(f"skipped: {reason}")
        pytest.skip(reason)


def image(root: Path) -> Path:
    """A root file system with the sample and the libraries it is linked with."""
    for folder in ["usr/local/bin", "tmp", "proc", "dev"]:
        (root / folder).mkdir(parents=True)
    shutil.copy2(SAMPLE, root / PROGRAM)
    linked = subprocess.run(["ldd", SAMPLE], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+) \(0x", linked):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library, target)
    return root


def run_in(root: Path, directory: Path, **environment: str) -> Service:
    script = (
        f"set -e; mount --bind {root} {root}; mount --rbind /proc {root}/proc; mount -t tmpfs tmpfs {root}/tmp;"
        f" mount -o remount,bind,ro {root}; exec chroot --userspec={USER}:{USER} {root} /{PROGRAM}"
    )
    command = ["unshare", "--mount", "setpriv", "--no-new-privs", "sh", "-c", script]
    return Service(directory, {"MEMRAY_PROFILER_DIR": "", "TMPDIR": "/tmp"} | environment, command)


def report_of(service: Service, directory: Path) -> Path:
    """Leaks, stops and downloads."""
    service.perform(3)
    stopped = service.post(f"{PROFILER}/stop")
    assert stopped.status == 200, stopped
    report = directory / "report.bin"
    report.write_bytes(service.get(f"{PROFILER}/report").body)
    return report


def test_it_works_read_only_without_rights_and_with_its_own_libraries_only(tmp_path):
    with run_in(image(tmp_path / "root"), tmp_path) as service:
        status = Path(f"/proc/{service.process.pid}/status").read_text()
        assert re.search(rf"^Uid:\s+{USER}\s", status, re.MULTILINE), "it runs as the user without rights"
        assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE), "and without capabilities"
        assert is_the_leak(*largest_leak(report_of(service, tmp_path)))
        touch = ["nsenter", "--mount", "--target", str(service.process.pid), "touch", f"{tmp_path}/root/x"]
        assert subprocess.run(touch, capture_output=True).returncode != 0, "the root file system is read-only"
        assert service.terminate() == 0


def test_where_nothing_can_be_written_start_says_so_and_the_service_runs_on(tmp_path):
    with run_in(image(tmp_path / "root"), tmp_path, MEMRAY_PROFILER_DIR="/usr/local/profiles") as service:
        answer = service.post(f"{PROFILER}/start")
        assert answer.status >= 400
        assert "/usr/local/profiles" in answer.json()["error"], answer
        service.perform(1)


def test_a_stripped_binary_is_resolved_with_its_debug_file_beside_it(tmp_path):
    root = image(tmp_path / "root")
    program = root / PROGRAM
    debug = program.with_suffix(".debug")
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug.name}", program], check=True, cwd=program.parent)
    with run_in(root, tmp_path) as service:
        assert is_the_leak(*largest_leak(report_of(service, tmp_path)))


def test_a_stripped_binary_is_resolved_with_its_debug_file_by_build_id(tmp_path):
    root = image(tmp_path / "root")
    program = root / PROGRAM
    notes = subprocess.run(["readelf", "--notes", program], check=True, capture_output=True, text=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
    debug = root / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    with run_in(root, tmp_path) as service:
        assert is_the_leak(*largest_leak(report_of(service, tmp_path)))


def test_a_stripped_binary_without_debug_file_loses_names_and_no_bytes(tmp_path):
    root = image(tmp_path / "root")
    subprocess.run(["strip", root / PROGRAM], check=True)
    with run_in(root, tmp_path) as service:
        place, size = largest_leak(report_of(service, tmp_path))
        assert re.match(r"memory-leak\+0x[0-9a-f]+ ", place), place
        assert size == LEAKED_BYTES
