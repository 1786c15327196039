"""Kept reports that the service copies to an object storage: to a real one, and to ones that are down, slow or wrong."""

from __future__ import annotations

import json
import random
import signal
import time

import pytest
from xxhash import xxh3_64_intdigest

from faulty import answering, drips, self_signed, server
from memray_cli import largest_leak
from object_storage import BUCKET, KEY, S3, SECRET, variables
from prometheus import documented_metrics, promtool, samples
from running import free_port
from service import LEAKED_BYTES, PROFILER, Service, is_the_leak


def stored(service: Service) -> dict:
    return service.get(f"{PROFILER}/status").json()["store"]


def kept(service: Service) -> list[dict]:
    return service.get(f"{PROFILER}/reports").json()


def test_a_report_is_copied_whole_with_its_note_once_the_storage_is_there(tmp_path):
    storage = S3(tmp_path / "s3", port=free_port())
    with Service(tmp_path / "shop", variables(storage.port) | {"OTEL_SERVICE_NAME": "my shop"}) as service:
        service.perform(3)
        service.post(f"{PROFILER}/stop")
        found = service.until(lambda: (now := stored(service))["failures"] and now, "the first try fails")
        assert (found["stored"], found["waiting"], found["dropped"]) == (0, 1, 0) and found["trouble"], found
        assert kept(service)[0]["stored"] is None
        with storage:
            found = service.until(lambda: (now := stored(service))["stored"] and now, "it is copied")
            assert (found["waiting"], found["waiting_bytes"], found["trouble"]) == (0, 0, None), found
            (report,) = storage.objects(".bin")
            assert report.read_bytes() == service.get(f"{PROFILER}/report").body
            assert is_the_leak(*largest_leak(report))
            (note,) = storage.objects(".json")
            about, (listed,) = json.loads(note.read_text()), kept(service)
            assert about["stored"] == listed["stored"] == storage.address(report)
            assert report.parent.parent == storage.root / BUCKET / "prod" / "eu" / "my_shop"
            assert about["service"] == "my shop" and about["host"] == listed["host"] != ""
            assert {name: about[name] for name in listed if name != "present"} == {
                name: value for name, value in listed.items() if name != "present"
            }
            assert about["largest"]["live"]["bytes"] >= LEAKED_BYTES
            figures = samples(service.get(f"{PROFILER}/metrics").text())
            of_store = {name for name in figures if "_store" in name}
            assert of_store == {name for name in documented_metrics() if "_store" in name}
            results = {one.labels["result"]: one.value for one in figures["heapray_stored_reports_total"]}
            assert results == {"stored": 1, "dropped": 0}
            assert promtool("check", "metrics", text=service.get(f"{PROFILER}/metrics").text()) == ""


def test_a_report_in_several_parts_is_the_same(tmp_path):
    port = free_port()
    with Service(tmp_path / "shop", variables(port)) as service:
        service.post(f"{PROFILER}/stop")
    # A real one of this length would take minutes to record. Nothing but the length and the checksum says what is in it.
    (report,) = (tmp_path / "shop" / "profiler" / "heapray-reports").glob("*.bin")
    note = report.with_suffix(".note")
    text, short = note.read_text(), report.read_bytes()
    long = random.Random(1).randbytes(12 << 20)
    sums = [f"\nreport {len(content)} {xxh3_64_intdigest(content)}\n" for content in (short, long)]
    assert sums[0] in text
    note.write_text(text.replace(*sums))
    report.write_bytes(long)
    with S3(tmp_path / "s3", port=port) as storage, Service(tmp_path / "shop", variables(port)) as service:
        service.until(lambda: stored(service)["stored"], "it is copied")
        (copy,) = storage.objects(".bin")
        assert copy.read_bytes() == long


def test_what_a_killed_process_has_left_and_what_the_flight_recorder_wrote_are_copied_once(tmp_path):
    port = free_port()
    flight = variables(port) | {"MEMRAY_PROFILER_SIGUSR2": "true"}
    with Service(tmp_path / "shop", flight) as service:
        service.perform(1)
        service.process.send_signal(signal.SIGUSR2)
        service.until(lambda: kept(service), "a report is written")
        service.perform(2)
        service.kill()
    with S3(tmp_path / "s3", port=port) as storage:
        for _ in range(2):
            with Service(tmp_path / "shop", flight) as service:
                is_done = lambda: len(reports := kept(service)) >= 2 and all(report["stored"] for report in reports)  # noqa: E731
                service.until(is_done, "both are copied")
                assert service.terminate() == 0
        notes = [json.loads(path.read_text()) for path in storage.objects(".json")]
        kinds = sorted(note["trigger"]["kind"] for note in notes if note["trigger"])
        assert kinds == ["killed", "signal"]
        killed = next(note for note in notes if note["trigger"] and note["trigger"]["kind"] == "killed")
        # The last moments may not have been on disk.
        assert killed["host"] == "" and killed["largest"]["live"]["bytes"] >= LEAKED_BYTES // 3
        # The two that were stopped at their end have one each.
        assert len(notes) == len(storage.objects(".bin")) == 4


def test_the_last_report_is_copied_before_the_service_ends(tmp_path):
    with S3(tmp_path / "s3") as storage, Service(tmp_path / "shop", variables(storage.port)) as service:
        service.perform(3)
        assert service.terminate() == 0
        (report,) = storage.objects(".bin")
        assert is_the_leak(*largest_leak(report)) and storage.objects(".json")


def test_a_directory_is_a_storage(tmp_path):
    share = tmp_path / "share" / "reports"
    with Service(tmp_path / "shop", {"MEMRAY_PROFILER_STORE": f"file://{share}"}) as service:
        service.perform(3)
        service.post(f"{PROFILER}/stop")
        service.until(lambda: stored(service)["stored"], "it is copied")
        (report,) = share.rglob("*.bin")
        assert kept(service)[0]["stored"] == f"file://{report}"
        assert report.read_bytes() == service.get(f"{PROFILER}/report").body


def test_a_wrong_key_is_a_trouble_that_shows_no_key(tmp_path):
    wrong = f"{SECRET}-of-yesterday"
    with S3(tmp_path / "s3") as storage, Service(tmp_path / "shop", variables(storage.port, wrong)) as service:
        service.perform(1)
        service.post(f"{PROFILER}/stop")
        found = service.until(lambda: (now := stored(service))["failures"] and now, "it is refused")
        assert "403" in found["trouble"] or "Forbidden" in found["trouble"], found
        assert storage.objects("") == []
        shown = service.get(f"{PROFILER}/status").text() + service.output()
        assert SECRET not in shown and KEY not in shown


@pytest.mark.parametrize(
    ("handle", "said"),
    [
        (answering(500, b"out of order"), "500"),
        (answering(503), "503"),
        (answering(404, b"<Error><Code>NoSuchBucket</Code></Error>"), "NoSuchBucket"),
        (answering(302, Location="http://127.0.0.1:1/"), "302"),
    ],
    ids=["500", "503", "404", "302"],
)
def test_a_storage_that_does_not_take_a_report_costs_nothing(tmp_path, handle, said):
    with server(handle) as (address, requests):
        port = int(address.rpartition(":")[2])
        with Service(tmp_path / "shop", variables(port)) as service:
            service.perform(3)
            service.post(f"{PROFILER}/stop")
            found = service.until(lambda: (now := stored(service))["failures"] and now, "a try fails")
            assert said in found["trouble"] and (found["stored"], found["waiting"]) == (0, 1), found
            assert service.get(f"{PROFILER}/report").status == 200 and len(requests) < 20
            began = time.monotonic()
            assert service.terminate() == 0
            assert time.monotonic() - began < 15


def test_a_storage_that_drips_its_answer_holds_nothing_up(tmp_path):
    with server(drips) as (address, _):
        port = int(address.rpartition(":")[2])
        with Service(tmp_path / "shop", variables(port)) as service:
            service.post(f"{PROFILER}/stop")
            began = time.monotonic()
            service.post(f"{PROFILER}/start")
            service.perform(3)
            assert service.post(f"{PROFILER}/stop").json()["live"]["bytes"] >= LEAKED_BYTES
            assert service.terminate() == 0
            assert time.monotonic() - began < 30


def test_a_wrong_certificate_is_refused(tmp_path):
    _, both = self_signed(tmp_path)
    with server(answering(200), both) as (address, requests):
        port = int(address.rpartition(":")[2])
        with Service(tmp_path / "shop", variables(port, scheme="https")) as service:
            service.post(f"{PROFILER}/stop")
            found = service.until(lambda: (now := stored(service))["failures"] and now, "a try fails")
            assert "certificate" in found["trouble"].lower() and requests == [], found


def test_a_report_that_is_deleted_before_it_is_copied_is_counted(tmp_path):
    with Service(tmp_path / "shop", variables(free_port())) as service:
        service.post(f"{PROFILER}/stop")
        service.until(lambda: stored(service)["failures"], "a try fails")
        (report,) = kept(service)
        assert service.request("DELETE", f"{PROFILER}/reports/{report['id']}").status in (200, 204)
        service.post(f"{PROFILER}/start")
        service.post(f"{PROFILER}/stop")
        found = service.until(lambda: (now := stored(service))["dropped"] and now, "it is missed")
        assert (found["dropped"], found["waiting"]) == (1, 1)
