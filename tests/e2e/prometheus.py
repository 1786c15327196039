"""Prometheus and promtool, as Debian installs them, and the files in `deploy` that are for them."""

from __future__ import annotations

import json
import re
import shutil
import time
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families as parse_text

from running import Running, free_port, run
from service import ROOT
from skipping import skip

DEPLOY = ROOT / "deploy"
CONFIGURATION = DEPLOY / "prometheus" / "prometheus-heapray.yml"
RULES = DEPLOY / "prometheus" / "heapray-alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "heapray.json"
MONITORING = ROOT / "docs" / "monitoring.md"
# The target that the configuration names.
TARGET = "127.0.0.1:7000"

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def tool(name: str) -> str:
    """The path of an outside program. Without it the test is skipped, and fails in CI."""
    path = shutil.which(name)
    if path is None:
        skip(f"{name} is not installed: run scripts/install-test-tools")
    return path


def promtool(*arguments: str | Path, text: str = "") -> str:
    """What promtool printed; its failure fails the test."""
    return run(tool("promtool"), *arguments, text=text)


def samples(text: str, parse=parse_text) -> dict[str, list]:
    """The samples by their names: `heapray_allocations_total` and not the family's name."""
    found: dict[str, list] = {}
    for family in parse(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def documented_metrics() -> dict[str, str]:
    """The table in docs/monitoring.md: each metric with its type. A histogram has several metrics."""
    found = dict(re.findall(r"^\| `(heapray_\w+)` \| (gauge|counter|histogram) \|", MONITORING.read_text(), re.MULTILINE))
    for histogram in [metric for metric, kind in found.items() if kind == "histogram"]:
        del found[histogram]
        found |= dict.fromkeys([f"{histogram}_{part}" for part in ("bucket", "sum", "count")], "histogram")
    return found


def documented_values(heading: str) -> set[str]:
    """The first column of the table that begins with `heading`."""
    table = MONITORING.read_text().split(f"| {heading} | |\n|---|---|\n")[1].split("\n\n")[0]
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def alert_rules() -> list[dict]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return group["rules"]


def without_variables(query: str) -> str:
    """A query of the dashboard, with what Grafana would put in the place of its variables."""
    for variable, value in [("$__rate_interval", "1m"), ("$__interval", "15s"), ("$job", ".*"), ("$instance", ".*")]:
        query = query.replace(variable, value)
    assert "$" not in query, query
    return query


def dashboard_queries() -> list[str]:
    """Every PromQL expression of the dashboard: panels, annotations and variables."""
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    queries += [annotation["target"]["expr"] for annotation in dashboard["annotations"]["list"] if "target" in annotation]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            queries.append(re.fullmatch(r"label_values\((.*), \w+\)", variable["query"]["query"])[1])
    return [without_variables(query) for query in queries]


def documented_queries() -> list[str]:
    """The PromQL of docs/monitoring.md: the second column of its table of questions."""
    table = MONITORING.read_text().split("| question | PromQL |\n|---|---|\n")[1].split("\n\n")[0]
    return re.findall(r"\| `([^`]+)` \|$", table, re.MULTILINE)


def shortened(rules: str, hour: float) -> str:
    """The alert rules with an hour of so many seconds: each duration, and each 3600 for an hour, is cut accordingly."""

    def milliseconds(found: re.Match) -> str:
        return f"{round(int(found[1]) * SECONDS[found[2]] * 1000 * hour / 3600)}ms"

    rules = re.sub(r"(?<=[\[ ])([1-9]\d*)([smh])\b", milliseconds, rules)
    return re.sub(r"\b3600\b", f"{hour:g}", rules)


@dataclass
class Prometheus(Running):
    """A server that scrapes, as `prometheus-heapray.yml` says. Ends by `with`."""

    pause_seconds = 0.1

    targets: list[str]
    # What stands for the 15 seconds between two scrapes, and between two evaluations of the rules.
    interval: str = "1s"
    rules: str = field(default_factory=RULES.read_text)
    token: str = ""
    # Call sites in each answer. Their names are looked up, which takes longer than a very short interval.
    sites: int = 10

    def start(self) -> None:
        program = tool("prometheus")
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / RULES.name).write_text(self.rules)
        (self.directory / CONFIGURATION.name).write_text(self._configuration())
        self.port = free_port()
        self.launch(
            [
                program,
                f"--config.file={self.directory / CONFIGURATION.name}",
                f"--storage.tsdb.path={self.directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--enable-feature=exemplar-storage",
                "--log.level=warn",
            ]
        )

    def _configuration(self) -> str:
        text = CONFIGURATION.read_text()
        assert text.count(": 15s\n") == 2 and text.count(f'"{TARGET}"') == 1, text
        text = text.replace(": 15s\n", f": {self.interval}\n").replace(f'["{TARGET}"]', json.dumps(self.targets))
        assert text.count('sites: ["10"]') == 1, text
        text = text.replace('sites: ["10"]', f'sites: ["{self.sites}"]')
        return with_token(text, self.directory, self.token) if self.token else text

    def is_ready(self) -> bool:
        return self.get("/-/ready").status == 200

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The present value of each series."""
        answer = self.get(f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        assert answer.status == 200, f"{expression}: {answer.text()}"
        data = answer.json()["data"]
        assert data["resultType"] == "vector", data
        return [(series["metric"], float(series["value"][1])) for series in data["result"]]

    def value(self, expression: str) -> float | None:
        """The present value of the only series, if there is one."""
        found = self.query(expression)
        assert len(found) <= 1, found
        return found[0][1] if found else None

    def exemplars(self, selector: str) -> list[dict]:
        """The exemplars of the last minute of the selected series."""
        now = time.time()
        query = urllib.parse.urlencode({"query": selector, "start": now - 60, "end": now + 1})
        answer = self.get(f"/api/v1/query_exemplars?{query}")
        assert answer.status == 200, answer.text()
        return [exemplar for series in answer.json()["data"] for exemplar in series["exemplars"]]

    def firing(self) -> list[dict[str, str]]:
        """The labels of all alerts that fire."""
        alerts = self.get("/api/v1/alerts").json()["data"]["alerts"]
        return [alert["labels"] for alert in alerts if alert["state"] == "firing"]

    def broken_rules(self) -> list[str]:
        groups = self.get("/api/v1/rules").json()["data"]["groups"]
        return [
            f"{rule['name']}: {rule['lastError']}" for group in groups for rule in group["rules"] if rule["health"] == "err"
        ]


def with_token(configuration: str, directory: Path, token: str) -> str:
    """The configuration with the lines for a token, which are comments in it, and a file that holds the token."""
    file = directory / "heapray-token"
    file.write_text(token)
    commented = "    # authorization:\n    #   credentials_file: /etc/prometheus/heapray-token\n"
    assert commented in configuration, configuration
    return configuration.replace(commented, f"    authorization:\n      credentials_file: {file}\n")
