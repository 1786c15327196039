"""Reports of a stripped service, which get their names afterwards: from the unstripped program, a debug file, and a real debuginfod."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from go_pprof import top
from heapray_cli import HEAPRAY
from memray_cli import largest_leak, leaked_at
from page_data import packed_in
from running import DEADLINE_SECONDS, free_port
from service import PROFILER, ROOT, SAMPLE, Service, is_the_leak
from skipping import skip

LEAKING = "leak_a_million_numbers"
SAMPLE_SOURCES = ROOT / "sample" / "memory-leak" / "src"


def tool(name: str) -> str:
    found = shutil.which(name)
    if not found:
        skip(f"{name} is not installed")
    return found


def command(*arguments, **environment) -> subprocess.CompletedProcess:
    """Runs the command with a cache of its own, in which nothing is."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD_")}
    variables |= {"NO_PROXY": "*", "no_proxy": "*", "COLUMNS": "240"}
    arguments = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as cache:
        variables |= {"XDG_CACHE_HOME": cache} | environment
        return subprocess.run([HEAPRAY, *arguments], capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=variables)


def recorded(directory, program, settings) -> tuple:
    """The status and the report of `program`, after three leaks."""
    directory.mkdir()
    with Service(directory, settings, [program]) as service:
        service.perform(3)
        status = service.get(f"{PROFILER}/status").json()
        service.post(f"{PROFILER}/stop")
        report = directory / "report.bin"
        report.write_bytes(service.get(f"{PROFILER}/report").body)
        page = service.get(f"{PROFILER}/flamegraph").text()
    assert "<html" in page
    return status, report


def leaking_stacks(report, *options) -> set[str]:
    """The stacks of the leak, from the root to the line, as the program that was not stripped calls itself."""
    text = command("convert", "collapsed", report, "--lines", "-o", "-", *options).stdout
    stacks = (line.rpartition(" ")[0] for line in text.splitlines())
    return {stack.replace(str(report.parent / "program"), str(SAMPLE)) for stack in stacks if LEAKING in stack}


@pytest.fixture(scope="module")
def stripped(tmp_path_factory):
    """What a stripped program recorded."""
    directory = tmp_path_factory.mktemp("stripped")
    program = directory / "recording" / "program"
    copy = directory / "program"
    subprocess.run([tool("objcopy"), "--strip-all", SAMPLE, copy], check=True)
    (directory / "moved").mkdir()
    shutil.move(copy, directory / "moved" / "program")
    status, report = recorded(program.parent, directory / "moved" / "program", {})
    assert status["symbols"] == "lines"
    return report


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The leak's stacks, as a program with debug information records them."""
    _, report = recorded(tmp_path_factory.mktemp("whole") / "recording", SAMPLE, {})
    # Of all builds, only one with sections that are compressed with zstd lacks something: a service does not read them.
    stacks = leaking_stacks(report)
    assert stacks
    return stacks


def named_by(program, stacks: set[str]) -> set[str]:
    return {stack.replace(str(program), str(SAMPLE)) for stack in stacks}


@pytest.fixture
def debug_folder(tmp_path):
    """A folder with the debug file of the sample."""
    folder = tmp_path / "debug"
    folder.mkdir()
    subprocess.run([tool("objcopy"), "--only-keep-debug", SAMPLE, folder / "any-name.debug"], check=True)
    # Of `split-debuginfo = "packed"`.
    if SAMPLE.with_suffix(".dwp").exists():
        shutil.copy(SAMPLE.with_suffix(".dwp"), folder / "any-name.dwp")
    return folder


@pytest.mark.parametrize("kept", ["program", "debug file"])
def test_a_stripped_program_gets_its_names_from_what_was_kept(tmp_path, stripped, whole, debug_folder, kept):
    program = stripped.parents[1] / "moved" / "program"
    named = tmp_path / "named.bin"
    options = ["--binary", SAMPLE] if kept == "program" else ["--debug-dir", debug_folder]
    done = command("symbolize", stripped, *options, "-o", named)
    assert done.returncode == 0, done.stderr
    assert named_by(program, leaking_stacks(named, "--no-symbolize")) == whole


def test_the_names_lead_to_the_leak(tmp_path, stripped):
    program = stripped.parents[1] / "moved" / "program"
    named = tmp_path / "named.bin"
    done = command("symbolize", stripped, "--binary", SAMPLE, "-o", named)
    assert done.returncode == 0, done.stderr
    assert "have a line now" in done.stderr, done.stderr
    assert is_the_leak(*largest_leak(named))

    # memray reads the one without names as well, with the same sums.
    assert sum(leaked_at(stripped).values()) == sum(leaked_at(named).values())
    info = json.loads(command("info", "--json", stripped).stdout)
    [module] = [module for module in info["modules"] if module["path"] == str(program)]
    assert module["without_function"] == module["frames"] > 100, module
    assert len(module["build_id"]) == 40, module

    # Where the program is, nothing needs to be said.
    shutil.copy(stripped, tmp_path / "in-place.bin")
    done = command("symbolize", tmp_path / "in-place.bin", "--in-place", "--binary", SAMPLE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "in-place.bin").read_bytes() == named.read_bytes()


def test_a_second_report_of_a_build_needs_no_file(tmp_path, stripped):
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    [first, second, third] = [tmp_path / f"{name}.bin" for name in ["first", "second", "third"]]
    assert command("symbolize", stripped, "--binary", SAMPLE, "-o", first, **cache).returncode == 0
    done = command("symbolize", stripped, "-o", second, **cache)
    assert done.returncode == 0 and "have a line now" in done.stderr, done.stderr
    assert first.read_bytes() == second.read_bytes()
    # A damaged cache costs time, and nothing else.
    for file in (tmp_path / "cache" / "heapray" / "names").iterdir():
        file.write_text("[1, 2")
    assert command("symbolize", stripped, "-o", third, **cache).returncode == 1
    assert command("symbolize", stripped, "--binary", SAMPLE, "-o", third, **cache).returncode == 0
    assert first.read_bytes() == third.read_bytes()


def test_another_build_is_refused_with_both_ids(tmp_path, stripped):
    done = command("symbolize", stripped, "--binary", HEAPRAY, "-o", tmp_path / "named.bin")
    assert done.returncode == 1
    assert "is not used: its build id is " in done.stderr, done.stderr
    assert "no names were found" in done.stderr and "--binary" in done.stderr, done.stderr
    assert not (tmp_path / "named.bin").exists()


@pytest.mark.parametrize("mode", ["off", "functions"])
def test_a_service_that_looks_up_less_gets_the_rest_from_its_own_program(tmp_path, mode, whole):
    status, report = recorded(tmp_path / "recording", SAMPLE, {"MEMRAY_PROFILER_SYMBOLS": mode})
    assert status["symbols"] == mode
    info = command("info", report).stdout
    assert f"MEMRAY_PROFILER_SYMBOLS={mode}" in info, info
    before = command("--no-symbolize", "table", "--leaks", report).stdout
    assert "leak.rs" not in before, before
    # Every command finds a program that is where the service had it, for sums and for events.
    for options in [[], ["--since", "1ms"]]:
        done = command("table", "--leaks", *options, report)
        assert "leak.rs" in done.stdout and "have a line now" in done.stderr, done
    named = tmp_path / "named.bin"
    assert command("symbolize", report, "-o", named).returncode == 0
    assert leaking_stacks(named, "--no-symbolize") == whole
    assert "MEMRAY_PROFILER_SYMBOLS" not in command("info", named).stdout


def test_a_real_debuginfod_has_the_names(tmp_path, stripped, whole, debug_folder):
    program = stripped.parents[1] / "moved" / "program"
    folder = debug_folder
    info = json.loads(command("info", "--json", stripped).stdout)
    [build_id] = [module["build_id"] for module in info["modules"] if module["path"] == str(program)]
    cache = {"DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
    port = free_port()
    url = f"http://localhost:{port}"
    # Its database in memory loses sources if it is asked while it reads the folder.
    database = tmp_path / "debuginfod.sqlite"
    server = [tool("debuginfod"), "-F", "-p", str(port), "-d", database, folder]
    with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            wait_for(f"{url}/buildid/{build_id}/debuginfo")
            found = tmp_path / "by-server.bin"
            done = command("symbolize", stripped, f"--debuginfod={url}", "-o", found, **cache)
            assert done.returncode == 0, done.stderr
            assert f"asking {url} for the debug file of program (build id {build_id})" in done.stderr, done.stderr
            assert named_by(program, leaking_stacks(found, "--no-symbolize")) == whole
            client = subprocess.run(
                [tool("debuginfod-find"), "debuginfo", build_id],
                env=os.environ | cache | {"DEBUGINFOD_URLS": url, "NO_PROXY": "*", "no_proxy": "*"},
                capture_output=True,
                text=True,
                check=True,
            )
            kept = tmp_path / "cache" / build_id / "debuginfo"
            assert client.stdout.strip() == str(kept)
            assert kept.read_bytes() == (folder / "any-name.debug").read_bytes()

            # The sources of the build, which the server finds by the debug file.
            page = tmp_path / "page.html"
            wait_for(f"{url}/buildid/{build_id}/source{SAMPLE_SOURCES}/leak.rs")
            done = command("flamegraph", found, f"--debuginfod={url}", "-o", page, **cache)
            assert done.returncode == 0 and f"asking {url} for {SAMPLE_SOURCES}/leak.rs" in done.stderr, done.stderr
            assert "Json(leak_a_million_numbers(&cache))" in packed_in(page.read_text())
            done = command("flamegraph", found, f"--debuginfod={url}", "-f", "-o", page, **cache)
            assert "asking" not in done.stderr, done.stderr
            client = subprocess.run(
                [tool("debuginfod-find"), "source", build_id, f"{SAMPLE_SOURCES}/leak.rs"],
                # Nobody is there: it is in the cache.
                env=os.environ | cache | {"DEBUGINFOD_URLS": f"http://localhost:{free_port()}", "NO_PROXY": "*", "no_proxy": "*"},
                capture_output=True,
                text=True,
                check=True,
            )
            assert Path(client.stdout.strip()).parent == kept.parent
        finally:
            running.terminate()
    # The server is gone. What it gave is in the cache, and it is not needed where nobody may be asked.
    done = command("symbolize", stripped, "-o", tmp_path / "cached.bin", **cache, DEBUGINFOD_URLS=url)
    assert done.returncode == 0 and "asking" not in done.stderr, done.stderr
    shutil.rmtree(tmp_path / "cache")
    done = command("symbolize", stripped, "-o", tmp_path / "none.bin", **cache, DEBUGINFOD_URLS=url)
    assert done.returncode == 1 and f"{url} could not be asked" in done.stderr, done.stderr
    done = command("symbolize", stripped, "--offline", "-o", tmp_path / "none.bin", **cache, DEBUGINFOD_URLS=url)
    assert done.returncode == 1 and url not in done.stderr, done.stderr


def test_a_profile_without_names_gets_them_from_go_s_pprof(tmp_path, monkeypatch):
    with Service(tmp_path) as service:
        service.perform(3)
        profile = tmp_path / "addresses.pb.gz"
        profile.write_bytes(service.get("/debug/pprof/heap?symbolize=false").body)
        named = tmp_path / "named.pb.gz"
        named.write_bytes(service.get("/debug/pprof/heap").body)
        report = tmp_path / "report.bin"
        report.write_bytes(service.get(f"{PROFILER}/report").body)
    assert LEAKING in top("-symbolize=none", named, directory=tmp_path)
    assert LEAKING not in top("-symbolize=none", profile, directory=tmp_path)
    info = json.loads(command("info", "--json", report).stdout)
    [build_id] = [module["build_id"] for module in info["modules"] if module["path"] == str(SAMPLE)]
    folder = tmp_path / "kept" / build_id
    folder.mkdir(parents=True)
    (folder / SAMPLE.name).symlink_to(SAMPLE)
    monkeypatch.setenv("PPROF_BINARY_PATH", str(folder.parent))
    assert LEAKING in top("-symbolize=local", profile, directory=tmp_path)


def wait_for(url: str) -> None:
    """Waits until the server has read its folder."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        try:
            with opener.open(url, timeout=DEADLINE_SECONDS):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError(f"{url} was not there in time")


def test_debian_s_debug_package_has_the_lines_of_the_c_library(tmp_path):
    """valgrind brings the package with it. Its files are compressed, and named by build id."""
    _, report = recorded(tmp_path / "recording", SAMPLE, {"MEMRAY_PROFILER_SYMBOLS": "off"})
    info = json.loads(command("info", "--json", report).stdout)
    [libc] = [module for module in info["modules"] if "libc.so" in module["path"]]
    build_id = libc["build_id"]
    if not Path(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug").exists():
        skip("the debug file of the C library is not installed")
    named = tmp_path / "named.bin"
    done = command("symbolize", report, "-o", named)
    assert done.returncode == 0 and f"{libc['path']}: " in done.stderr, done.stderr
    stacks = command("--no-symbolize", "convert", "collapsed", named, "--lines", "-o", "-").stdout
    assert "start_thread" in stacks and "pthread_create.c:" in stacks, stacks[:2000]
