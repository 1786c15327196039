"""The metrics of the running sample: judged by promtool, and scraped by the real Prometheus with the configuration, the alert
rules and the queries in `deploy`."""

from __future__ import annotations

import signal
import threading
import time

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from prometheus import (
    RULES,
    Prometheus,
    dashboard_queries,
    documented_metrics,
    documented_queries,
    documented_values,
    promtool,
    samples,
    shortened,
)
from service import LEAKED_BYTES, PROFILER, ROOT, Service

METRICS = f"{PROFILER}/metrics"
PREFIX = "/pub/job/memory-leak/0.1.0"
TOKEN = "s3cret-s3cret"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"

# Families that are there only where there is something to say.
OF_A_LIMIT = {"heapray_memory_limit_bytes", "heapray_memory_used_bytes"}
# Only where profiles are pushed or reports are copied: `test_push.py` and `test_store.py` look at them.
OF_WHAT_IS_SENT = {name for name in documented_metrics() if "_push" in name or "_store" in name}
OF_A_SESSION = {
    "heapray_recording_start_time_seconds",
    "heapray_live_bytes",
    "heapray_live_blocks",
    "heapray_high_water_bytes",
    "heapray_sample_interval_bytes",
}
OF_SITES = {"heapray_site_live_bytes", "heapray_site_live_blocks"}
OF_ROUTES = {"heapray_route_live_bytes", "heapray_route_live_blocks", "heapray_route_allocated_bytes_total"}
OF_ROUTES |= {f"heapray_route_request_bytes_{part}" for part in ("bucket", "sum", "count")}
OF_A_REPORT = {"heapray_last_report_time_seconds"}
# Those that docs/out-of-memory.md lists, and `stop`.
CAUSES = {"stop", "allocation_failed", "control_group", "host", "address_space", "size", "step", "slope", "signal"}
CAUSES |= {"killed", "unwritten", "overhead"}

# The hour of the rules, in seconds, where a test waits for alerts; and what then stands for 15 seconds.
HOUR = 4
INTERVAL = "250ms"
# What a container of this limit would have. The sample is not in one.
LIMIT = 400_000_000
# Between two calls of `perform`, which leaks 8 MB each.
PAUSE_SECONDS = 0.25
# Six of those hours, half an hour more, and much for a busy machine.
ALERT_SECONDS = 180


def ours(names) -> set[str]:
    return {name for name in names if name.startswith("heapray_")}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("metrics"), {"MEMRAY_PROFILER_BY_ROUTE": "true"}) as running:
        running.perform(3)
        yield running


@pytest.mark.parametrize("query", ["", "?process=true", "?sites=10", "?routes=true", "?sites=10&routes=true&process=true"])
@pytest.mark.parametrize("prefix", ["", PREFIX])
def test_promtool_has_nothing_to_say_about_the_metrics(service, prefix, query):
    answer = service.get(f"{prefix}{METRICS}{query}")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert promtool("check", "metrics", text=answer.text()) == ""


def test_promtool_has_nothing_to_say_about_a_service_that_does_not_record(tmp_path):
    with Service(tmp_path) as service:
        service.perform(1)
        service.post(f"{PROFILER}/stop")
        text = service.get(f"{METRICS}?sites=10&routes=true&process=true").text()
        assert promtool("check", "metrics", text=text) == ""
        found = samples(text)
        assert found["heapray_recording"][0].value == 0
        assert ours(found) == set(documented_metrics()) - OF_A_SESSION - OF_SITES - OF_ROUTES - OF_WHAT_IS_SENT - (OF_A_LIMIT - ours(found))
        stopped = [sample for sample in found["heapray_last_report_time_seconds"] if sample.labels["cause"] == "stop"]
        assert stopped[0].value == pytest.approx(time.time(), abs=120)


def test_the_documented_metrics_are_there_and_no_others(service):
    found = samples(service.get(f"{METRICS}?sites=10&routes=true").text())
    assert ours(found) - OF_A_REPORT == set(documented_metrics()) - OF_A_REPORT - OF_WHAT_IS_SENT - (OF_A_LIMIT - ours(found))
    assert {sample.labels["cause"] for sample in found["heapray_reports_total"]} == CAUSES
    assert {sample.labels["part"] for sample in found["heapray_rss_bytes"]} == documented_values("`part`")
    (info,) = found["heapray_info"]
    assert set(info.labels) == {"version", "mode", "sample_interval_bytes", "program"}
    assert (info.labels["mode"], info.labels["program"], info.value) == ("exact", "memory-leak", 1)
    assert found["heapray_live_bytes"][0].value >= LEAKED_BYTES
    assert len(found["heapray_site_live_bytes"]) <= 10
    largest = max(found["heapray_site_live_bytes"], key=lambda sample: sample.value)
    assert "leak_a_million_numbers" in largest.labels["function"], largest
    assert largest.labels["location"].rpartition(":")[0].endswith("src/leak.rs"), largest
    assert largest.value >= LEAKED_BYTES


def test_without_the_parameters_there_are_neither_sites_nor_routes_nor_families_of_the_process(service):
    found = samples(service.get(METRICS).text())
    assert not (OF_SITES | OF_ROUTES) & set(found)
    assert set(found) == ours(found)
    assert "process_resident_memory_bytes" in samples(service.get(f"{METRICS}?process=true").text())


def test_the_parts_of_the_resident_memory_add_up_to_it(service):
    found = samples(service.get(f"{METRICS}?process=true").text())
    parts = {sample.labels["part"]: sample.value for sample in found["heapray_rss_bytes"]}
    assert min(parts.values()) >= 0
    assert parts["live"] >= 0.9 * LEAKED_BYTES
    assert sum(parts.values()) == pytest.approx(found["process_resident_memory_bytes"][0].value, rel=0.1)


def test_openmetrics_is_answered_where_it_is_asked_for_and_says_the_same(service):
    answer = service.get(f"{METRICS}?sites=10&routes=true&process=true", headers={"Accept": OPENMETRICS})
    assert answer.headers["content-type"] == f"{OPENMETRICS}; charset=utf-8"
    assert answer.text().endswith("# EOF\n")
    text = samples(service.get(f"{METRICS}?sites=10&routes=true&process=true").text())
    assert set(samples(answer.text(), parse_openmetrics)) == set(text)


def test_prometheus_scrapes_the_sample_and_no_counter_falls_over_a_stop_and_a_start(tmp_path):
    by_route = {"MEMRAY_PROFILER_BY_ROUTE": "true"}
    with (
        Service(tmp_path / "sample", by_route) as service,
        Prometheus(tmp_path / "prometheus", [f"127.0.0.1:{service.port}"]) as server,
    ):
        service.perform(3)
        server.until(lambda: server.value("up") == 1, "the target is up")
        server.until(lambda: (server.value("heapray_live_bytes") or 0) >= LEAKED_BYTES, "the leak is live")
        before = server.value("heapray_allocated_bytes_total")

        service.post(f"{PROFILER}/stop")
        server.until(lambda: server.value("heapray_recording") == 0, "the target does not record")
        assert server.query("heapray_live_bytes") == []
        written = server.value('time() - heapray_last_report_time_seconds{cause="stop"}')
        assert written is not None and written < 60

        service.post(f"{PROFILER}/start")
        service.perform(1)
        begun = lambda: (server.value("heapray_live_bytes") or 0) >= LEAKED_BYTES / 3  # noqa: E731
        server.until(begun, "the second session is live")
        assert server.value("heapray_live_bytes") < LEAKED_BYTES
        assert server.value("heapray_allocated_bytes_total") >= before + LEAKED_BYTES / 3

        counters = [name for name, kind in documented_metrics().items() if kind != "gauge" and name not in OF_WHAT_IS_SENT]
        for counter in counters:
            fallen = server.query(f"resets({counter}[5m])")
            assert fallen, counter
            assert [series for series in fallen if series[1] != 0] == [], counter

        assert server.broken_rules() == []
        # Each is an answer without an error. What it is about may be missing: a limit, a day of history.
        for query in dashboard_queries() + documented_queries():
            server.query(query)
        for query in ["heapray_recording", "sum by (part) (heapray_rss_bytes)", "topk(10, heapray_site_live_bytes)"]:
            assert server.query(query), query


def test_prometheus_keeps_the_traces_of_requests_as_exemplars(tmp_path):
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with (
        Service(tmp_path / "sample", {"MEMRAY_PROFILER_BY_ROUTE": "true"}) as service,
        Prometheus(tmp_path / "prometheus", [f"127.0.0.1:{service.port}"]) as server,
    ):
        service.get("/api/v1/quote", headers={"traceparent": f"00-{trace}-{span}-01"})
        selector = 'heapray_route_request_bytes_bucket{route="GET /api/v1/quote"}'
        server.until(lambda: server.exemplars(selector), "the request's trace is kept")
        exemplar = server.exemplars(selector)[0]
        assert exemplar["labels"] == {"trace_id": trace, "span_id": span}
        assert float(exemplar["value"]) == pytest.approx(1_600_000, rel=0.01)


def test_with_a_token_the_target_is_up_only_with_the_file_that_has_it(tmp_path):
    with Service(tmp_path / "sample", {"MEMRAY_PROFILER_TOKEN": TOKEN}) as service:
        assert service.get(METRICS).status == 401
        assert service.get(METRICS, headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
        target = [f"127.0.0.1:{service.port}"]
        with Prometheus(tmp_path / "without", target) as without, Prometheus(tmp_path / "with", target, token=TOKEN) as server:
            server.until(lambda: server.value("up") == 1, "the target is up")
            without.until(lambda: without.query("up"), "the target is scraped")
            assert without.value("up") == 0
            (scraped,) = without.get("/api/v1/targets").json()["data"]["activeTargets"]
            assert "401" in scraped["lastError"]


def rules_for_a_test() -> str:
    """The rules with an hour of some seconds, and a limit, which the sample has only in a container."""
    rules = yaml.safe_load(shortened(RULES.read_text(), HOUR))
    for rule in rules["groups"][0]["rules"]:
        limit, used = f"(heapray_recording * {LIMIT})", "(sum without (part) (heapray_rss_bytes))"
        rule["expr"] = rule["expr"].replace("heapray_memory_limit_bytes", limit).replace("heapray_memory_used_bytes", used)
    return yaml.safe_dump(rules)


def test_the_alerts_fire_for_a_leak_and_stay_silent_for_a_service_that_does_nothing(tmp_path):
    ends = threading.Event()

    def leak(service: Service) -> None:
        while not ends.wait(PAUSE_SECONDS):
            service.perform(1)

    with (
        Service(tmp_path / "leaking", {"MEMRAY_PROFILER_SIGUSR2": "true"}) as leaking,
        Service(tmp_path / "idle") as idle,
        Prometheus(
            tmp_path / "prometheus",
            [f"127.0.0.1:{service.port}" for service in (leaking, idle)],
            interval=INTERVAL,
            rules=rules_for_a_test(),
            sites=0,
        ) as server,
    ):
        caller = threading.Thread(target=leak, args=[leaking])
        caller.start()
        try:
            seen: set[tuple[str, str, str]] = set()
            wanted = {
                ("HeaprayMemoryRunsOut", "critical"),
                ("HeaprayMemoryRunsOut", "warning"),
                ("HeaprayLiveGrowth", "warning"),
                ("HeaprayReportWritten", "warning"),
            }

            def all_fired() -> bool:
                seen.update((alert["alertname"], alert["severity"], alert["instance"]) for alert in server.firing())
                return wanted <= {alert[:2] for alert in seen}

            server.until(lambda: server.query("up == 1"), "a target is up")
            leaking.process.send_signal(signal.SIGUSR2)
            server.until(all_fired, f"{wanted} fire", ALERT_SECONDS)
        finally:
            ends.set()
            caller.join()
        assert {alert[2] for alert in seen} == {f"127.0.0.1:{leaking.port}"}, seen
        assert {alert[:2] for alert in seen} == wanted, seen
        (cause,) = [alert["cause"] for alert in server.firing() if alert["alertname"] == "HeaprayReportWritten"]
        assert cause == "signal"
        assert server.broken_rules() == []


def test_the_documentation_lists_all_causes():
    text = (ROOT / "docs" / "monitoring.md").read_text()
    assert all(f"`{cause}`" in text for cause in CAUSES)
