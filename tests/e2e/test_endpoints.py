"""The endpoints of the running sample, over real sockets."""

from __future__ import annotations

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clock import Clock
from go_pprof import top
from memray_cli import largest_leak
from service import LEAKED_BYTES, PROFILER, SLACK_BYTES, Service, is_the_leak

PREFIXES = ["", "/pub/job/memory-leak/0.1.0", "/pub/job/any/latest"]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("endpoints")) as running:
        yield running


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_everything_answers_below_every_prefix_with_and_without_a_slash(service, prefix, slash):
    for method, name, kind in [
        ("POST", "start", "application/json"),
        ("GET", "status", "application/json"),
        ("GET", "report", "application/octet-stream"),
        ("POST", "stop", "application/json"),
        ("GET", "report", "application/octet-stream"),
        ("GET", "flamegraph", "text/html; charset=utf-8"),
        ("GET", "stats", "text/plain; charset=utf-8"),
        ("GET", "table", "text/plain; charset=utf-8"),
        ("GET", "tree", "text/plain; charset=utf-8"),
        ("GET", "summary", "text/plain; charset=utf-8"),
        ("GET", "pprof", "application/octet-stream"),
        ("GET", "reports", "application/json"),
    ]:
        answer = service.request(method, f"{prefix}{PROFILER}/{name}{slash}")
        assert (answer.status, answer.headers["content-type"]) == (200, kind), (name, answer)
    for path in ["/health", "/live", "/ready", "/openapi.json"]:
        assert service.get(f"{prefix}{path}").status == 200, path
    assert service.post(f"{prefix}/api/v1/perform").status == 200


def test_a_report_asked_for_while_recording_is_a_snapshot_that_memray_reads(service, tmp_path):
    service.post(f"{PROFILER}/start")
    service.perform(2)
    answer = service.get(f"{PROFILER}/report")
    service.post(f"{PROFILER}/stop")
    report = tmp_path / "snapshot.bin"
    report.write_bytes(answer.body)
    assert is_the_leak(*largest_leak(report), calls=2)


def test_a_download_is_resumed_where_it_broke_off(service):
    service.post(f"{PROFILER}/stop")
    whole = service.get(f"{PROFILER}/report")
    assert int(whole.headers["content-length"]) == len(whole.body)
    assert re.fullmatch(r'(W/)?"[^"]+"', whole.headers["etag"])
    rest = service.get(f"{PROFILER}/report", headers={"Range": "bytes=1000-", "If-Range": whole.headers["etag"]})
    assert rest.status == 206
    assert rest.body == whole.body[1000:]
    again = service.get(f"{PROFILER}/report", headers={"If-None-Match": whole.headers["etag"]})
    assert again.status == 304


def record(service, calls: int) -> None:
    service.post(f"{PROFILER}/start")
    service.perform(calls)
    service.post(f"{PROFILER}/stop")


def test_memray_opens_the_report_of_an_earlier_session(service, tmp_path):
    record(service, 2)
    record(service, 1)
    former = service.get(f"{PROFILER}/reports").json()[1]
    assert former["largest"]["file"].endswith("memory-leak/src/leak.rs"), former
    report = tmp_path / "former.bin"
    report.write_bytes(service.get(f"{PROFILER}/reports/{former['id']}/report").body)
    assert is_the_leak(*largest_leak(report), calls=2)
    assert service.request("DELETE", f"{PROFILER}/reports/{former['id']}").status == 204
    assert service.get(f"{PROFILER}/reports/{former['id']}/report").status == 404


def test_a_service_that_was_restarted_still_has_its_former_report(tmp_path):
    with Service(tmp_path) as first:
        first.perform(3)
        assert first.terminate(signal.SIGTERM) == 0, first.output()
    with Service(tmp_path) as second:
        (former,) = second.get(f"{PROFILER}/reports").json()
        assert not former["present"]
        report = tmp_path / "former.bin"
        report.write_bytes(second.get(f"{PROFILER}/reports/{former['id']}/report").body)
        assert is_the_leak(*largest_leak(report))


def test_go_tool_pprof_names_the_leak_first(service, tmp_path):
    record(service, 3)
    profile = tmp_path / "memray-report.pb.gz"
    profile.write_bytes(service.get(f"{PROFILER}/pprof").body)
    said = top("-sample_index=inuse_space", profile, directory=tmp_path)
    table = said[said.index("flat%") :].splitlines()
    assert re.match(r"\s*24\d{6}B .*leak_a_million_numbers", table[1]), said


def test_go_tool_pprof_fetches_the_heap_by_itself_and_compares_two(service, tmp_path):
    heap = service.url("/debug/pprof/heap")
    service.post(f"{PROFILER}/start")
    service.perform(1)
    before = tmp_path / "before.pb.gz"
    before.write_bytes(service.get("/debug/pprof/heap").body)
    service.perform(2)
    table = top(heap, directory=tmp_path)
    assert "Type: inuse_space" in table
    assert re.search(r"\b24\d{6}B .*leak_a_million_numbers", table), table
    assert "Type: alloc_space" in top(service.url("/debug/pprof/allocs"), directory=tmp_path)
    table = top(f"-diff_base={before}", heap, directory=tmp_path)
    assert re.search(r"\b16\d{6}B .*leak_a_million_numbers", table), table
    service.post(f"{PROFILER}/stop")
    assert service.get("/debug/pprof/heap").status == 503


def test_what_was_allocated_does_not_fall_at_a_new_session(service, tmp_path):
    profile = tmp_path / "heap.pb.gz"

    def leaked(kind: str) -> int:
        profile.write_bytes(service.get("/debug/pprof/heap").body)
        (row,) = re.findall(
            r"^ *(\d+)B .* memory_leak::leak::leak_a_million_numbers",
            top(f"-sample_index={kind}", profile, directory=tmp_path),
            re.MULTILINE,
        )
        return int(row)

    service.post(f"{PROFILER}/start")
    service.perform(3)
    before = leaked("alloc_space")
    service.post(f"{PROFILER}/stop")
    service.post(f"{PROFILER}/start")
    service.perform(1)
    assert leaked("alloc_space") - before == pytest.approx(8_000_000, abs=SLACK_BYTES)
    assert leaked("inuse_space") == pytest.approx(8_000_000, abs=SLACK_BYTES)
    # Of the session alone.
    profile.write_bytes(service.get(f"{PROFILER}/pprof").body)
    assert re.search(r"\b8\d{6}B .*leak_a_million_numbers", top("-sample_index=alloc_space", profile, directory=tmp_path))
    service.post(f"{PROFILER}/stop")


def test_a_profile_of_a_session_that_is_days_old_is_of_now(tmp_path):
    clock = Clock(tmp_path)
    clock.move("-3d")
    with Service(tmp_path / "sample", clock.variables()) as service:
        service.perform(3)
        clock.move("+0d")
        began = datetime.fromisoformat(service.get(f"{PROFILER}/status").json()["recording_since"])
        assert datetime.now(UTC) - began > timedelta(days=2)
        profile = tmp_path / "heap.pb.gz"
        profile.write_bytes(service.get("/debug/pprof/heap").body)
        said = top("-sample_index=inuse_space", profile, directory=tmp_path)
        assert re.search(r"\b24\d{6}B .*leak_a_million_numbers", said)
        taken = datetime.fromisoformat(re.search(r"^Time: (.*) UTC$", said, re.MULTILINE)[1]).replace(tzinfo=UTC)
        assert datetime.now(UTC) - taken < timedelta(minutes=5), taken


@pytest.mark.parametrize("path", ["heap", "delta_heap"])
def test_a_profile_of_some_seconds_has_what_is_allocated_meanwhile_and_all_that_is_live(service, tmp_path, path):
    service.post(f"{PROFILER}/start")
    service.perform(2)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(service.get, f"/debug/pprof/{path}?seconds=2")
        time.sleep(0.5)
        service.perform(1)
        answer = asked.result()
    assert (answer.status, answer.headers["content-type"]) == (200, "application/octet-stream")
    profile = tmp_path / "meanwhile.pb.gz"
    profile.write_bytes(answer.body)
    for kind, leaked in [("alloc_space", 8), ("inuse_space", 24)]:
        table = top(f"-sample_index={kind}", profile, directory=tmp_path)
        assert re.search(rf"\b{leaked}\d{{6}}B .*leak_a_million_numbers", table), table
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(service.get, f"/debug/pprof/{path}?seconds=2")
        time.sleep(0.5)
        service.post(f"{PROFILER}/stop")
        assert asked.result().status == 503


def test_profiles_of_some_seconds_are_made_a_few_at_a_time(service):
    service.post(f"{PROFILER}/start")
    with ThreadPoolExecutor(max_workers=6) as pool:
        answers = list(pool.map(lambda _: service.get("/debug/pprof/heap?seconds=2").status, range(6)))
    assert sorted(answers) == [200] * 4 + [503] * 2
    service.post(f"{PROFILER}/stop")


def test_a_mark_is_set_only_while_recording(service):
    service.post(f"{PROFILER}/start")
    mark = service.post(f"{PROFILER}/mark?name=before+the+load").json()
    assert mark["name"] == "before the load" and set(mark["live"]) == {"count", "bytes"}
    service.post(f"{PROFILER}/stop")
    assert service.post(f"{PROFILER}/mark?name=late").status == 409


def test_samples_lead_to_the_leak_too_and_memray_reads_them(tmp_path):
    with Service(tmp_path, {"MEMRAY_PROFILER_SAMPLE": "64KiB"}) as service:
        service.perform(3)
        sampling = service.post(f"{PROFILER}/stop").json()["sampling"]
        assert sampling["mean_bytes"] == 65536
        assert sampling["asked"]["count"] > 10 * sampling["samples"]
        report = tmp_path / "sampled.bin"
        report.write_bytes(service.get(f"{PROFILER}/report").body)
        assert "sizes and counts are estimates" in service.get(f"{PROFILER}/stats").text()
    # Blocks as large as these are never left out, so they are not estimated either.
    assert is_the_leak(*largest_leak(report))


def test_what_the_owner_knows_is_no_leak(tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text('[[known]]\nfile = "src/leak.rs"\nreason = "it is a sample"\n')
    with Service(tmp_path, {"MEMRAY_PROFILER_KNOWN": str(rules)}) as service:
        service.perform(3)
        service.post(f"{PROFILER}/stop")
        heapray = service.get(f"{PROFILER}/stats?format=json").json()["heapray"]
        assert [leak for leak in heapray["leaks"] if "leak.rs" in leak["file"]] == []
        [known] = heapray["known"]
        assert known["reason"] == "it is a sample"
        assert known["live_bytes"] >= LEAKED_BYTES
        assert "it is a sample: " in service.get(f"{PROFILER}/stats").text()


def test_a_bad_file_of_known_call_sites_is_a_warning(tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text("[[known]]\n")
    with Service(tmp_path, {"MEMRAY_PROFILER_KNOWN": str(rules)}) as service:
        service.perform(1)
        assert service.get(f"{PROFILER}/status").json()["state"] == "recording"
        log = service.output()
        assert "no call site is known" in log and "rule 1 has neither" in log


def test_without_the_variable_there_is_no_profiler(tmp_path):
    with Service(tmp_path, {"MEMRAY_PROFILER": "false"}) as service:
        for method, name in [("POST", "start"), ("POST", "stop"), ("GET", "status"), ("GET", "report")]:
            assert service.request(method, f"{PROFILER}/{name}").status == 404
        assert service.post("/api/v1/perform").status == 200
        tasks = Path(f"/proc/{service.process.pid}/task").iterdir()
        threads = [(task / "comm").read_text().strip() for task in tasks]
        assert not [name for name in threads if name.startswith("heapray")], threads


def test_with_a_token_nobody_gets_in_without_it(tmp_path):
    with Service(tmp_path, {"MEMRAY_PROFILER_TOKEN": "s3cret-s3cret"}) as service:
        for headers in [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret-s3cret"}]:
            answer = service.get(f"{PROFILER}/status", headers=headers)
            assert answer.status == 401, headers
            assert set(answer.json()) == {"error", "type"}
        right = {"Authorization": "Bearer s3cret-s3cret"}
        assert service.get(f"{PROFILER}/status", headers=right).status == 200
        assert service.post("/api/v1/perform").status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_graceful_shutdown_leaves_a_finished_report(tmp_path, number):
    with Service(tmp_path) as service:
        service.perform(3)
        assert service.terminate(number) == 0, service.output()
    (report,) = (tmp_path / "profiler").glob("*.bin")
    assert is_the_leak(*largest_leak(report))
    assert not list(tmp_path.rglob("*.spool")), "the event log is gone with its session"
    assert not list(tmp_path.rglob(".heapray-*")), "no draft is left"


def test_a_directory_that_cannot_be_written_is_told_and_the_service_runs_on(tmp_path):
    blocked = tmp_path / "a-file"
    blocked.write_text("not a directory")
    with Service(tmp_path, {"MEMRAY_PROFILER_DIR": str(blocked)}) as service:
        answer = service.post(f"{PROFILER}/start")
        assert answer.status >= 400
        assert str(blocked) in answer.json()["error"]
        service.perform(1)


def test_a_strangers_host_name_and_dot_segments_lead_nowhere(service):
    for host, status in [("localhost", 200), ("127.0.0.1:7000", 200), ("evil.example", 403), ("evil.example:80", 403)]:
        answer = service.get(f"{PROFILER}/status", headers={"Host": host})
        assert answer.status == status, (host, answer)
    assert "MEMRAY_PROFILER_HOSTS" in answer.json()["error"]
    for dots in ["..", "%2e%2e", ".%2E", "%2e", "a%2f.."]:
        for path in [f"/pub/job/{dots}/{dots}/live", f"/pub/job/a/{dots}/live", f"/pub/job/a/{dots}{PROFILER}/status"]:
            assert service.get(path).status == 404, path
