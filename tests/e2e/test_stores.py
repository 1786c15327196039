"""The profiles in real profile stores: pushed to Pyroscope with both of its storages, and scraped by Parca. What they say that
they have is what `go tool pprof` finds in the file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from go_pprof import top
from heapray_cli import HEAPRAY, heapray
from running import DEADLINE_SECONDS
from service import LEAKED_BYTES, PROFILER, SAMPLE, Service
from skipping import skip
from stores import Parca, Pyroscope

HEAP = "/debug/pprof/heap"
LEAK = "leak_a_million_numbers"
TYPES = {
    "alloc_objects": "count",
    "alloc_space": "bytes",
    "inuse_objects": "count",
    "inuse_space": "bytes",
}


def totals(profile: Path) -> dict[str, int]:
    """The sum of each sample type, as `go tool pprof` counts it."""
    tables = {kind: top("-nodecount=1", f"-sample_index={kind}", profile, directory=profile.parent) for kind in TYPES}
    return {kind: int(re.search(r" of (\d+)B? total", table)[1]) for kind, table in tables.items()}


@pytest.mark.parametrize("storage", ["v1", "v2"])
def test_pyroscope_has_what_go_tool_pprof_finds_over_a_stop_and_a_start(tmp_path, storage):
    with Pyroscope(tmp_path / "pyroscope", storage=storage) as server, Service(tmp_path / "sample") as service:
        for session, calls in [("first", 3), ("second", 1)]:
            if session == "second":
                service.post(f"{PROFILER}/stop")
                service.post(f"{PROFILER}/start")
            service.perform(calls)
            profile = tmp_path / f"{session}.pb.gz"
            profile.write_bytes(service.get(HEAP).body)
            # It refuses profiles while a part of it starts.
            server.until(lambda body=profile.read_bytes(), name=session: server.ingest(name, body).status == 200, "it is taken")
            expected = totals(profile)
            assert expected["inuse_space"] >= LEAKED_BYTES * calls / 3
            for kind, unit in TYPES.items():
                name = f"memory:{kind}:{unit}:space:bytes"
                ask = lambda of=name, name=session: server.flame_graph(name, of)  # noqa: E731
                total, functions = server.until(lambda ask=ask: (found := ask())[0] and found, f"{kind} is there")
                assert total == expected[kind], kind
                assert any(LEAK in function for function in functions), functions
        # A series for each sample type, and none for a thread or an allocator.
        series = server.ask("Series", matchers=['{service_name="first"}'], labelNames=[]).get("labelsSet", [])
        names = {label["name"] for one in series for label in one["labels"]}
        assert not {"thread", "allocator"} & names, names


def test_pyroscope_refuses_nothing_of_a_program_with_many_call_sites(tmp_path):
    """Its limits are those that the profiler keeps by itself. The file with everything is beyond them only in large programs."""
    with Pyroscope(tmp_path / "pyroscope") as server, Service(tmp_path / "sample") as service:
        service.perform(1)
        for query in ["", "?labels=thread", "?limit=10"]:
            answer = server.ingest(f"sample{len(query)}", service.get(f"{HEAP}{query}").body)
            assert answer.status == 200, answer


@pytest.mark.parametrize("path", [None, f"{PROFILER}/pprof"])
def test_parca_scrapes_live_memory_that_is_not_a_difference(tmp_path, path):
    profile = "enabled: true" if path is None else f"enabled: true, path: {path}"
    with Service(tmp_path / "sample") as service:
        service.perform(3)
        with Parca(tmp_path / "parca", target=f"127.0.0.1:{service.port}", profile=profile) as server:
            types = server.until(lambda: server.ask("/api/profiles/types").get("types"), "it has profiles")
            assert {kind["sampleType"] for kind in types} >= set(TYPES)
            assert [kind for kind in types if kind["name"] != "memory" or kind["delta"]] == []
            # Each scrape is live memory by itself, which is not summed up over scrapes.
            latest = server.until(lambda: (found := server.live_points())[3:] and found[-1], "it has scraped several times")
            file = tmp_path / "now.pb.gz"
            file.write_bytes(service.get(HEAP).body)
            assert int(latest["value"]) == pytest.approx(totals(file)["inuse_space"], rel=0.01)
            assert LEAK in server.live_functions(latest)


def without_names(directory: Path) -> Service:
    """A sample that looks up no symbols."""
    return Service(directory, {"MEMRAY_PROFILER_SYMBOLS": "off"})


def upload(store: str, port: int, file: Path) -> str:
    """Sends a debug file to a store, and then again, which the store does not need. Returns what is said of that."""
    arguments = ["upload-symbols", f"--{store}", f"http://127.0.0.1:{port}", str(file)]
    assert heapray(*arguments).startswith(f"Sent {file} to {store.capitalize()}")
    done = subprocess.run([HEAPRAY, *arguments], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True)
    assert done.stdout == "", done
    return done.stderr


def debug_file(directory: Path, *options: str) -> Path:
    """The sample's names without its code."""
    if not shutil.which("objcopy"):
        skip("objcopy is not installed")
    file = directory / f"sample{len(options)}.debug"
    subprocess.run(["objcopy", "--only-keep-debug", *options, SAMPLE, file], check=True)
    return file


def test_pyroscope_names_a_profile_once_it_has_the_debug_file(tmp_path):
    kind = "memory:inuse_space:bytes:space:bytes"
    with Pyroscope(tmp_path / "pyroscope") as server, without_names(tmp_path / "sample") as service:
        service.perform(3)
        profile = tmp_path / "profile.pb.gz"
        profile.write_bytes(service.get(HEAP).body)
        assert LEAK not in top("-symbolize=none", profile, directory=tmp_path)
        said = upload("pyroscope", server.port, debug_file(tmp_path))
        assert "already exists" in said, said
        server.until(lambda: server.ingest("sample", profile.read_bytes()).status == 200, "it is taken")
        ask = lambda: server.flame_graph("sample", kind)  # noqa: E731
        total, functions = server.until(lambda: (found := ask())[0] and found, "it is there")
        assert total == totals(profile)["inuse_space"]
        assert any(LEAK in function for function in functions), functions


def test_parca_names_a_profile_once_it_has_the_debug_file(tmp_path):
    with (
        without_names(tmp_path / "sample") as service,
        Parca(tmp_path / "parca", target=f"127.0.0.1:{service.port}") as server,
    ):
        service.perform(3)
        # Go reads nothing of a file in which a section of debug information has no bytes.
        useless = ["upload-symbols", "--parca", server.url(""), debug_file(tmp_path)]
        done = subprocess.run([HEAPRAY, *useless], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        assert done.returncode == 1 and "--remove-section=.debug_gdb_scripts" in done.stderr, done
        said = upload("parca", server.port, debug_file(tmp_path, "--remove-section=.debug_gdb_scripts"))
        assert "already exists" in said, said

        def is_named() -> bool:
            points = server.live_points()
            return bool(points) and LEAK in server.live_functions(points[-1])

        server.until(is_named, "the leak has a name")
