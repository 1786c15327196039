"""Profiles that the service pushes by itself: to real profile stores, and to servers that are down, slow or wrong."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from clock import Clock
from faulty import answering, drips, self_signed, server
from prometheus import documented_metrics, promtool, samples
from running import free_port
from service import LEAKED_BYTES, PROFILER, SAMPLE, Service
from stores import Parca, Pyroscope

LEAK = "leak_a_million_numbers"
HIDDEN = "hunter2"
CALL_STACKS = 1 << 16


def pushing(directory: Path, target: str, **variables: str) -> Service:
    """A sample that pushes each second."""
    environment = {"MEMRAY_PROFILER_PUSH": target, "MEMRAY_PROFILER_PUSH_INTERVAL": "1"}
    return Service(directory, environment | variables)


def status(service: Service) -> dict:
    return service.get(f"{PROFILER}/status").json()


def pushed(service: Service) -> dict:
    return status(service)["push"]


@pytest.mark.parametrize(("storage", "protocol"), [("v1", "pyroscope"), ("v2", "pyroscope"), ("v2", "otlp")])
def test_pyroscope_has_all_that_was_allocated_over_an_outage_a_crash_and_a_restart(tmp_path, storage, protocol):
    store = Pyroscope(tmp_path / "pyroscope", storage=storage)
    # The service starts long before the server does.
    store.start()
    store.kill()
    target = f"{protocol}+http://127.0.0.1:{store.port}"
    run = "PYROSCOPE_LABELS" if protocol == "pyroscope" else "OTEL_RESOURCE_ATTRIBUTES"
    name = "PYROSCOPE_APPLICATION_NAME" if protocol == "pyroscope" else "OTEL_SERVICE_NAME"
    with pushing(tmp_path / "sample", target, **{run: "run=first", name: "shop"}) as service:
        service.perform(3)
        service.until(lambda: pushed(service)["waiting"] >= 3 and pushed(service)["failures"], "profiles wait")
        assert "trouble" in pushed(service) and service.get("/live").status == 200
    store = Restarted(tmp_path / "pyroscope", storage=storage, port=store.port)
    with store, pushing(tmp_path / "sample", target, **{run: "run=second", name: "shop"}) as service:
        allocated = 0
        # The second session is over before a profile of it is due.
        for calls, seconds in [(2, 2.5), (1, 0), (1, 1.5)]:
            service.post(f"{PROFILER}/start")
            service.perform(calls)
            time.sleep(seconds)
            session = service.post(f"{PROFILER}/stop").json()
            allocated += session["allocated"]["bytes"]
            live = session["live"]["bytes"]
        all_there = service.until(
            lambda: (found := pushed(service))["waiting"] == 0 and found["sent"] and found, "all are there"
        )
        assert (all_there["refused"], all_there["dropped"], all_there["not_made"]) == (0, 0, 0), all_there

        def graph(kind: str, of: str) -> tuple[int, list[str]]:
            select = f'{{service_name="shop", run="{of}"}}'
            found = store.ask("SelectMergeStacktraces", profileTypeID=kind, labelSelector=select, maxNodes=10_000)
            return int(found.get("flamegraph", {}).get("total", 0)), found.get("flamegraph", {}).get("names", [])

        space = "memory:{}_space:bytes:memory:bytes" if protocol == "otlp" else "memory:{}_space:bytes:space:bytes"
        # Each profile has what was allocated since the one before, so their sum is all that was allocated. What was taken can be
        # asked for after some seconds.
        store.until(lambda: graph(space.format("alloc"), "second")[0] >= allocated, "all can be asked for", seconds=60)
        total, names = graph(space.format("alloc"), "second")
        assert total == allocated
        assert any(LEAK in one for one in names)
        # The crashed process's own were pushed by the one after it.
        total, names = graph(space.format("alloc"), "first")
        assert total >= LEAKED_BYTES and any(LEAK in one for one in names)
        select = '{service_name="shop", run="second"}'
        series = store.ask("SelectSeries", profileTypeID=space.format("inuse"), labelSelector=select, step=1, groupBy=[])
        points = [point for one in series["series"] for point in one["points"] if float(point["value"])]
        assert live in {int(float(point["value"])) for point in points[-2:]}, (live, points)
        labels = store.ask("Series", matchers=[select], labelNames=[])["labelsSet"]
        assert {label["name"] for one in labels for label in one["labels"]} >= {"service_name", "run"}
        assert not list((tmp_path / "sample" / "profiler" / "push").glob("*.profile"))


def test_the_background_and_a_session_that_was_asked_for_are_both_in_the_store(tmp_path):
    variables = {"MEMRAY_PROFILER_CONTINUOUS": "true", "PYROSCOPE_APPLICATION_NAME": "shop"}
    with Pyroscope(tmp_path / "pyroscope") as store:
        target = f"pyroscope+http://127.0.0.1:{store.port}"
        with pushing(tmp_path / "sample", target, **variables) as service:
            allocated = 0
            for step, state in [("start", "background"), ("stop", "recording"), (None, "background")]:
                service.perform(2)
                now = status(service)
                assert (now["state"], now["sampling"] is None) == (state, state == "recording")
                allocated += now["allocated"]["bytes"]
                if step:
                    service.post(f"{PROFILER}/{step}")
            assert allocated >= 6 * LEAKED_BYTES // 4, "estimates"
            kind, select = "memory:alloc_space:bytes:space:bytes", '{service_name="shop"}'

            def total() -> int:
                found = store.ask("SelectMergeStacktraces", profileTypeID=kind, labelSelector=select)
                return int(found.get("flamegraph", {}).get("total", 0))

            store.until(lambda: total() >= allocated, "all can be asked for", seconds=60)
            # Requests allocate too: some samples of the background, at most.
            assert total() <= allocated + 8 * (512 << 10)
            found = pushed(service)
            assert (found["refused"], found["dropped"], found["not_made"]) == (0, 0, 0), found


def test_a_session_that_is_days_old_is_pushed_and_profiles_that_waited_for_days_are_counted(tmp_path):
    clock = Clock(tmp_path)
    clock.move("-3d")
    port = free_port()
    store = Restarted(tmp_path / "pyroscope", storage="v2", port=port)
    variables = clock.variables() | {"PYROSCOPE_APPLICATION_NAME": "shop"}
    with pushing(tmp_path / "sample", f"pyroscope+http://127.0.0.1:{port}", **variables) as service:
        service.perform(3)
        old = service.until(lambda: (now := pushed(service))["waiting"] >= 2 and now["failures"] and now, "profiles wait")
        clock.move("+0d")
        with store:
            # Pyroscope takes nothing that is older than an hour.
            found = service.until(
                lambda: (now := pushed(service))["sent"] >= 2 and now["waiting"] == 0 and now, "all were tried", seconds=180
            )
            assert found["refused"] >= old["waiting"] and (found["dropped"], found["not_made"]) == (0, 0), found
            live = service.post(f"{PROFILER}/stop").json()["live"]["bytes"]
            kind = "memory:inuse_space:bytes:space:bytes"
            store.until(lambda: live in store.live_points("shop", kind), "the last profile can be asked for", seconds=60)


class CallStacks(Service):
    """A program with 65,536 call stacks, and no routes but the profiler's."""

    def is_ready(self) -> bool:
        return self.get(f"{PROFILER}/status").json()["live"]["count"] >= CALL_STACKS


@pytest.mark.parametrize("protocol", ["pyroscope", "otlp", "parca"])
def test_of_65536_call_stacks_every_store_has_all_bytes(tmp_path, protocol):
    target = f"127.0.0.1:{free_port()}"
    is_parca = protocol == "parca"
    store = Parca(tmp_path / "store", target=target) if is_parca else Pyroscope(tmp_path / "store")
    with store:
        variables = {"MEMRAY_PROFILER_PUSH": f"{protocol}+http://127.0.0.1:{store.port}", "OTEL_SERVICE_NAME": "stacks"}
        with CallStacks(tmp_path / "program", variables, [SAMPLE.parent / "examples" / "call_stacks"]) as program:
            live = program.post(f"{PROFILER}/stop").json()["live"]["bytes"]
            assert live >= CALL_STACKS * 100
            found = program.until(lambda: (now := pushed(program))["sent"] and not now["waiting"] and now, "it is pushed")
            assert (found["refused"], found["dropped"], found["not_made"], found["failures"]) == (0, 0, 0, 0), found

            def is_there() -> bool:
                if is_parca:
                    return live in [int(point["value"]) for point in store.live_points('{job="stacks"}')]
                space = f"memory:inuse_space:bytes:{'memory' if protocol == 'otlp' else 'space'}:bytes"
                points = store.live_points("stacks", space)
                return live in points

            store.until(is_there, "all bytes can be asked for", seconds=60)


class Restarted(Pyroscope):
    """A server at a port that a service knows already."""

    def __init__(self, directory: Path, storage: str, port: int) -> None:
        super().__init__(directory, storage=storage)
        self.known_port = port

    def start(self) -> None:
        self.port = self.known_port
        self.launch(self.command(), cwd=self.directory)


def test_parca_gets_live_memory_that_is_not_a_difference(tmp_path):
    with Parca(tmp_path / "parca", target=f"127.0.0.1:{free_port()}") as server:
        target = f"parca+http://127.0.0.1:{server.port}"
        with pushing(tmp_path / "sample", target, OTEL_SERVICE_NAME="shop") as service:
            service.perform(3)
            service.until(lambda: pushed(service)["sent"] >= 3, "profiles are pushed")
            assert (pushed(service)["refused"], pushed(service)["trouble"]) == (0, None)
            types = server.until(lambda: server.ask("/api/profiles/types").get("types"), "it has profiles")
            assert [kind for kind in types if kind["name"] != "memory" or kind["delta"]] == []
            live = service.post(f"{PROFILER}/stop").json()["live"]["bytes"]
            select = '{job="shop"}'
            is_last = lambda: (found := server.live_points(select)) and int(found[-1]["value"]) == live and found[-1]  # noqa: E731
            latest = server.until(is_last, "the last is there")
            assert LEAK in server.live_functions(latest, select)


@pytest.mark.parametrize(
    ("handle", "said"),
    [
        (answering(500, b"out of order"), "500 Internal Server Error: out of order"),
        (answering(429, Retry_After="3600"), "429 Too Many Requests"),
        (answering(401), "401 Unauthorized"),
        (answering(302, Location="http://127.0.0.1:1/"), "302 Found"),
        (answering(200, b"<html>Log in</html>", Content_Type="text/html"), "a web page answers"),
        (lambda request: request.connection.shutdown(socket.SHUT_RDWR), "http"),
    ],
    ids=["500", "429", "401", "302", "a web page", "closed"],
)
def test_a_server_that_does_not_take_a_profile_costs_nothing_and_gets_it_later(tmp_path, handle, said):
    with server(handle) as (address, requests), pushing(tmp_path, f"pyroscope+{address}") as service:
        service.perform(1)
        found = service.until(lambda: (now := pushed(service))["waiting"] >= 2 and now["failures"] and now, "profiles wait")
        assert said in found["trouble"] and (found["sent"], found["refused"]) == (0, 0), found
        # Each second there is another profile, but not another request.
        assert len(requests) < 10
        metrics = service.get(f"{PROFILER}/metrics").text()
        assert promtool("check", "metrics", text=metrics) == ""
        figures = samples(metrics)
        assert figures["heapray_push_waiting_profiles"][0].value >= 2 and figures["heapray_push_failures_total"][0].value >= 1
        of_pushes = {name for name in figures if "_push" in name}
        # Nothing has ever been taken.
        assert of_pushes == {name for name in documented_metrics() if "_push" in name} - {"heapray_last_push_time_seconds"}
        began = time.monotonic()
        assert service.terminate() == 0
        assert time.monotonic() - began < 15
    assert list((tmp_path / "profiler" / "push").glob("*.profile"))


def test_a_profile_that_is_refused_is_dropped_and_the_next_one_is_tried(tmp_path):
    with (
        server(answering(422, b"outside of ingestion window")) as (address, requests),
        pushing(tmp_path, f"otlp+{address}") as service,
    ):
        found = service.until(lambda: (now := pushed(service))["refused"] >= 2 and now, "profiles are refused")
        assert "outside of ingestion window" in found["trouble"] and found["waiting"] == 0
        assert {request["path"] for request in requests} == {"/v1development/profiles"}


def test_a_server_that_drips_its_answer_is_given_up(tmp_path):
    with server(drips) as (address, _), pushing(tmp_path, f"pyroscope+{address}") as service:
        service.until(lambda: pushed(service)["failures"], "the answer is given up")
        began = time.monotonic()
        service.perform(1)
        assert status(service)["state"] == "recording"
        assert time.monotonic() - began < 10
        # It is stopped in the middle of the next push.
        assert service.terminate() == 0
        assert time.monotonic() - began < 25


def test_a_wrong_certificate_is_refused_and_one_of_the_machines_own_is_taken(tmp_path):
    certificate, both = self_signed(tmp_path)
    with server(answering(200), both) as (address, requests):
        with pushing(tmp_path / "strange", f"pyroscope+{address}") as service:
            found = service.until(lambda: (now := pushed(service))["failures"] and now, "the push fails")
            assert "certificate" in found["trouble"].lower() and requests == []
        trusted = {"SSL_CERT_FILE": str(certificate)}
        with pushing(tmp_path / "trusted", f"pyroscope+{address}", **trusted) as service:
            service.until(lambda: pushed(service)["sent"], "the push succeeds")


@pytest.mark.parametrize(
    ("protocol", "variables", "expected"),
    [
        ("parca", {"MEMRAY_PROFILER_PUSH_TOKEN": HIDDEN}, {"authorization": f"Bearer {HIDDEN}"}),
        (
            "pyroscope",
            {"PYROSCOPE_BASIC_AUTH_USER": "me", "PYROSCOPE_BASIC_AUTH_PASSWORD": HIDDEN, "PYROSCOPE_TENANT_ID": "acme"},
            {"authorization": "Basic bWU6aHVudGVyMg==", "x-scope-orgid": "acme"},
        ),
        ("otlp", {"OTEL_EXPORTER_OTLP_HEADERS": f"api-key={HIDDEN}"}, {"api-key": HIDDEN}),
    ],
    ids=["a token", "a password", "a header"],
)
def test_credentials_are_sent_and_never_shown(tmp_path, protocol, variables, expected):
    with server(answering(200)) as (address, requests), pushing(tmp_path, f"{protocol}+{address}", **variables) as service:
        service.until(lambda: pushed(service)["sent"], "a profile is sent")
        headers = {name.lower(): value for name, value in requests[0].items()}
        assert {name: headers.get(name) for name in expected} == expected
        assert HIDDEN not in service.get(f"{PROFILER}/status").text() + service.get(f"{PROFILER}/metrics").text()
        service.terminate()
        assert HIDDEN not in service.output()


def test_where_nothing_can_be_written_profiles_wait_in_memory_and_the_service_goes_on(tmp_path):
    folder = tmp_path / "profiler"
    folder.mkdir()
    (folder / "push").write_text("a file in the folder's place")
    refuses = threading.Event()
    take, refuse = answering(200), answering(503)
    handle = lambda request: (refuse if not refuses.is_set() else take)(request)  # noqa: E731
    with server(handle) as (address, _), pushing(tmp_path, f"pyroscope+{address}") as service:
        service.until(lambda: pushed(service)["dropped"], "there are too many")
        assert pushed(service)["waiting"] == 4
        refuses.set()
        service.until(lambda: pushed(service)["waiting"] == 0 and pushed(service)["sent"] >= 4, "they are sent")


def test_a_bad_target_is_an_error_that_hides_the_password(tmp_path):
    target = f"pyroscope+https://me:{HIDDEN}@profiles.example.com"
    with Service(tmp_path, {"MEMRAY_PROFILER_PUSH": target}) as service:
        assert "MEMRAY_PROFILER_PUSH is " in service.output() and HIDDEN not in service.output()
        assert service.get(f"{PROFILER}/status").status == 404
