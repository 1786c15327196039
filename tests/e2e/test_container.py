"""The image of `Dockerfile`, run as an engine runs it: what works there, and that docs and image say the same."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from container import Container, Manifest, inside, needs_root, root_file_system  # noqa: F401: a fixture is used by its name
from dockerfile import read
from memray_cli import largest_leak
from service import LEAKED_BYTES, PROFILER, ROOT, is_the_leak

DOCKERFILE = read()
PROGRAM = DOCKERFILE.image.entrypoint[0]


def run_in(root: Path, directory: Path, **environment: str) -> Container:
    return Container(directory, {"MEMRAY_PROFILER": "true"} | environment, root=root)


def report_of(service: Container, directory: Path) -> Path:
    """Leaks, stops and downloads."""
    service.perform(3)
    stopped = service.post(f"{PROFILER}/stop")
    assert stopped.status == 200, stopped
    report = directory / "report.bin"
    report.write_bytes(service.get(f"{PROFILER}/report").body)
    return report


def test_it_works_as_process_1_read_only_without_rights_and_with_its_own_libraries_only(tmp_path):
    user, group = DOCKERFILE.image.user.split(":")
    with run_in(root_file_system(tmp_path / "root"), tmp_path) as container:
        status = Path(f"/proc/{container.pid}/status").read_text()
        for line in [
            r"NSpid:\s+\d+\s+1",
            rf"Uid:\s+{user}\s+{user}\s+{user}\s+{user}",
            rf"Gid:\s+{group}\s+{group}\s+{group}\s+{group}",
            r"Groups:\s*",
            r"CapPrm:\s+0+",
            r"CapEff:\s+0+",
            r"NoNewPrivs:\s+1",
        ]:
            assert re.search(rf"^{line}$", status, re.MULTILINE), (line, status)
        mounts = Path(f"/proc/{container.pid}/mountinfo").read_text()
        writable = re.findall(r"^\S+ \S+ \S+ \S+ (\S+) rw", mounts, re.MULTILINE)
        writable = [path for path in writable if not path.startswith(("/dev/", "/proc", "/sys/"))]
        assert writable == ["/tmp"], mounts
        assert is_the_leak(*largest_leak(report_of(container, tmp_path)))
        assert container.terminate() == 0


def test_the_health_check_is_right_and_leaves_the_profiler_alone(tmp_path):
    command = DOCKERFILE.image.health_check
    with run_in(root_file_system(tmp_path / "root"), tmp_path) as container:
        files = lambda: sorted(path.name for path in Path(f"/proc/{container.pid}/root/tmp").iterdir())  # noqa: E731
        before = files()
        checked = container.run(*command)
        assert checked.returncode == 0, checked
        assert files() == before, "it records nothing of its own"
        nobody = container.run(*command, "--port", "1")
        assert nobody.returncode == 1, nobody


def test_image_manifest_and_workspace_agree():
    """What is said twice is said alike."""
    manifest, image = Manifest.read(), DOCKERFILE.image
    assert manifest.user == image.user.split(":")[0]
    assert manifest.environment["MEMRAY_PROFILER_DIR"] == manifest.volume
    assert manifest.volume in [copied.target for copied in image.copies], "an engine gives a volume that folder's owner"
    docs = (ROOT / "docs" / "containers.md").read_text()
    assert f"-p {image.port}:{image.port}" in docs and f"containerPort: {image.port}" in docs
    rust, release = re.fullmatch(r"rust:([\d.]+)-slim-(\w+)", DOCKERFILE.builder).groups()
    least = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    numbers = lambda version: [int(part) for part in version.split(".")]  # noqa: E731
    assert numbers(rust) >= numbers(least), "it is built with a compiler that can"
    debian = {"bookworm": "debian12", "trixie": "debian13"}[release]
    assert debian in image.base, "what it is linked with there has the libc that it runs with"


def test_where_nothing_can_be_written_start_says_so_and_the_service_runs_on(tmp_path):
    with run_in(root_file_system(tmp_path / "root"), tmp_path, MEMRAY_PROFILER_DIR="/usr/local/profiles") as service:
        answer = service.post(f"{PROFILER}/start")
        assert answer.status >= 400
        assert "/usr/local/profiles" in answer.json()["error"], answer
        service.perform(1)


def test_a_stripped_binary_is_resolved_with_its_debug_file_beside_it(tmp_path):
    root = root_file_system(tmp_path / "root")
    program = inside(root, PROGRAM)
    debug = program.with_suffix(".debug")
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug.name}", program], check=True, cwd=program.parent)
    with run_in(root, tmp_path) as service:
        assert is_the_leak(*largest_leak(report_of(service, tmp_path)))


def test_a_stripped_binary_is_resolved_with_its_debug_file_by_build_id(tmp_path):
    root = root_file_system(tmp_path / "root")
    program = inside(root, PROGRAM)
    notes = subprocess.run(["readelf", "--notes", program], check=True, capture_output=True, text=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
    debug = root / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    with run_in(root, tmp_path) as service:
        assert is_the_leak(*largest_leak(report_of(service, tmp_path)))


def test_a_stripped_binary_without_debug_file_loses_names_and_no_bytes(tmp_path):
    root = root_file_system(tmp_path / "root")
    subprocess.run(["strip", inside(root, PROGRAM)], check=True)
    with run_in(root, tmp_path) as service:
        place, size = largest_leak(report_of(service, tmp_path))
        assert re.match(r"memory-leak\+0x[0-9a-f]+ ", place), place
        assert size == LEAKED_BYTES
