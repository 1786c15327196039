"""The metrics, the alert rules and the dashboard, by Prometheus's own programs and Grafana's own types."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from prometheus import promtool, tool
from service import DEADLINE_SECONDS, PROFILER, ROOT, Service
from skipping import skip

DEPLOY = ROOT / "deploy" / "prometheus"
RULES = DEPLOY / "heapray-alerts.yml"
TESTS = DEPLOY / "heapray-alerts.test.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "heapray.json"
TOKEN = "s3cret-token"


def test_promtool_takes_the_configuration_and_the_rules():
    promtool("check", "config", DEPLOY / "prometheus-heapray.yml")
    promtool("check", "rules", RULES)
    assert "SUCCESS" in promtool("test", "rules", TESTS)


def test_each_alert_has_its_runbook_and_is_tested_both_ways():
    rules, tests = RULES.read_text(), TESTS.read_text()
    pages = (ROOT / "docs" / "alerts.md").read_text()
    families = (ROOT / "docs" / "monitoring.md").read_text()
    alerts = set(re.findall(r"alert: (\w+)", rules))
    assert len(alerts) >= 5
    for alert in alerts:
        assert f"\n## {alert}\n" in pages, alert
        assert f"alerts.md#{alert.lower()}\n" in rules, alert
        cases = re.findall(rf"alertname: {alert},?\s+exp_alerts: *(\[\])?", tests)
        assert "" in cases and "[]" in cases, f"{alert} fires in one test and is silent in another: {cases}"
    for name in set(re.findall(r"\bheapray_[a-z_]+", rules + " ".join(queries()))):
        assert name in families, f"docs/monitoring.md has {name}"


def queries() -> list[str]:
    """The dashboard's queries, for any job and instance."""
    dashboard = json.loads(DASHBOARD.read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    found += [a["target"]["expr"] for a in dashboard["annotations"]["list"] if "expr" in a.get("target", {})]
    assert len(found) > 20
    variables = {"$job": ".*", "$instance": ".*", "$__rate_interval": "1m"}
    return [re.sub("|".join(map(re.escape, variables)), lambda m: variables[m[0]], query) for query in found]


def test_the_dashboard_is_one_by_grafanas_own_types(tmp_path):
    folder = ROOT / "tests" / "e2e" / "dashboard"
    compiler = folder / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        skip("Grafana's types are not installed: run scripts/install-test-tools")

    def errors(dashboard: str) -> str:
        checked = folder / "node_modules" / "heapray-dashboard.ts"
        checked.write_text(f'import type {{ Checked }} from "../dashboard";\nexport const it: Checked = {dashboard};\n')
        options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext"]
        command = [compiler, *options, "--moduleResolution", "bundler", checked]
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout

    text = DASHBOARD.read_text()
    assert errors(text) == ""
    assert "gridPosition" in errors(text.replace('"gridPos"', '"gridPosition"', 1)), "a wrong property is found"


def test_promtool_finds_nothing_wrong_with_the_metrics(tmp_path):
    tool("promtool")
    with Service(tmp_path) as service:
        service.perform(1)
        for path in [
            f"{PROFILER}/metrics",
            f"{PROFILER}/metrics?process=true&sites=10",
            f"/pub/job/shop/1{PROFILER}/metrics",
        ]:
            answer = service.get(path)
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
            promtool("check", "metrics", text=answer.text())


@contextmanager
def scraping(directory: Path, target: int, extra: str = "", rules: str | None = None):
    """A real Prometheus that scrapes the service every second. Yields a function that asks it a query."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = (DEPLOY / "prometheus-heapray.yml").read_text()
    text = text.replace("127.0.0.1:7000", f"127.0.0.1:{target}").replace("15s", "1s")
    text = text.replace("    static_configs:", f"{extra}    static_configs:")
    (directory / "prometheus.yml").write_text(text)
    (directory / "heapray-alerts.yml").write_text(rules or RULES.read_text())
    command = [tool("prometheus"), f"--config.file={directory / 'prometheus.yml'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", f"--storage.tsdb.path={directory / 'data'}"]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)

    def ask(query: str) -> list[dict]:
        url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=DEADLINE_SECONDS) as answer:
            return json.load(answer)["data"]["result"]

    try:
        yield ask
    finally:
        process.terminate()
        process.wait(timeout=DEADLINE_SECONDS)


def wait_for(ask, query: str) -> list[dict]:
    """Waits until the query has an answer that is not empty."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            if found := ask(query):
                return found
        except OSError:
            pass  # It starts.
        assert time.monotonic() < deadline, f"Prometheus never answered {query}"
        time.sleep(0.2)


def test_a_real_prometheus_scrapes_the_sample_over_a_stop_and_a_start(tmp_path):
    tool("prometheus")
    with Service(tmp_path / "service") as service, scraping(tmp_path, service.port) as ask:
        service.perform(3)
        wait_for(ask, "heapray_live_bytes >= 24e6")
        for query in queries():
            ask(query)  # Fails if it cannot be read.
        sites = wait_for(ask, "heapray_site_live_bytes >= 24e6")
        assert sites[0]["metric"]["function"].endswith("leak_a_million_numbers")
        service.post(f"{PROFILER}/stop")
        wait_for(ask, 'heapray_reports_total{cause="stop"} == 1 and on () heapray_recording == 0')
        service.post(f"{PROFILER}/start")
        wait_for(ask, "heapray_recording == 1")
        for total in ["allocated_bytes", "allocations", "freed_bytes", "deallocations", "profiler_cpu_seconds"]:
            resets = wait_for(ask, f"resets(heapray_{total}_total[10m])")
            assert [one["value"][1] for one in resets] == ["0"], f"{total} has fallen: {resets}"
        assert wait_for(ask, "heapray_allocated_bytes_total >= 24e6")


@pytest.mark.parametrize("known", [True, False])
def test_a_token_is_needed_where_one_is_set(tmp_path, known):
    tool("prometheus")
    (tmp_path / "token").write_text(TOKEN)
    file = f"    authorization: {{ credentials_file: {tmp_path / 'token'} }}\n"
    environment = {"MEMRAY_PROFILER_TOKEN": TOKEN}
    with Service(tmp_path / "service", environment) as service:
        with scraping(tmp_path, service.port, extra=file if known else "") as ask:
            wait_for(ask, f"up == {int(known)}")


def test_alerts_fire_on_the_leaking_sample(tmp_path):
    """With the rules' own expressions. Only their times are shorter, by the same factor: an hour is two seconds."""
    tool("prometheus")
    seconds = {"s": 1, "m": 60, "h": 3600}
    factor = 1800

    def shorter(match: re.Match) -> str:
        return f"{max(1, int(match[1]) * seconds[match[2]] // factor)}s"

    rules = RULES.read_text()
    rules = re.sub(r"(?<=\[)(\d+)([smh])(?=\])", shorter, rules)
    rules = re.sub(r"(?<=offset )(\d+)([smh])\b", shorter, rules)
    rules = re.sub(r"(?<=for: )(\d+)([smh])\b", "0s", rules)
    rules = rules.replace("3600", "2")
    growth = rules[rules.index("- alert: HeaprayLiveGrowth") : rules.index("- alert: HeaprayResidentAboveLive")]
    assert "[4s]" in growth and "offset 8s" in growth and "> 6 * 2" in growth, growth
    environment = {"MEMRAY_PROFILER_TRIGGER_SIZE": "40MB"}
    with Service(tmp_path / "service", environment) as service:
        with scraping(tmp_path, service.port, rules=rules) as ask:
            deadline = time.monotonic() + DEADLINE_SECONDS
            firing: set[str] = set()
            wanted = {"HeaprayLiveGrowth", "HeaprayReportWritten"}
            while not wanted <= firing:
                assert time.monotonic() < deadline, f"{firing} of {wanted}"
                service.perform(1)
                time.sleep(0.5)
                try:
                    found = ask('ALERTS{alertstate="firing"}')
                except OSError:
                    continue  # It starts.
                firing |= {alert["metric"]["alertname"] for alert in found}
