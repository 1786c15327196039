"""The OpenAPI document and the running sample agree, by tools of others: requests made from the document, a linter, and
clients that are generated from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from service import PROFILER, ROOT, Service
from skipping import skip

TOOLS = ROOT / "tests" / "e2e" / "openapi"
TOKEN = "s3cret-s3cret"

# A whole run of the tool that makes requests; it has its own time limits for one.
SCHEMATHESIS_SECONDS = 600
# Requests for each kind of check and route. `live` takes ten seconds each.
EXAMPLES = int(os.environ.get("HEAPRAY_SCHEMATHESIS_EXAMPLES", "12"))


@pytest.fixture(params=["", TOKEN], ids=["without a token", "with a token"])
def service(request, tmp_path):
    directory = tmp_path / "sample"
    environment = {
        "MEMRAY_PROFILER_TOKEN": request.param,
        "MEMRAY_PROFILER_MEMORY_LOG": "true",
        "MEMRAY_PROFILER_MEMORY_DIR": str(directory / "memory"),
    }
    with Service(directory, environment) as running:
        running.token = request.param
        running.authorization = {"Authorization": f"Bearer {request.param}"} if request.param else {}
        # Something to ask for: a kept report, and a session that runs.
        running.perform(2)
        for name in ["stop", "start"]:
            assert running.post(f"{PROFILER}/{name}", headers=running.authorization).status == 200
        running.perform(1)
        yield running


@pytest.fixture
def document(service, tmp_path) -> Path:
    path = tmp_path / "openapi.json"
    path.write_bytes(service.get("/openapi.json").body)
    return path


def run(*command: str | Path, cwd: Path | None = None, seconds: int = 120) -> str:
    """What a tool printed; its failure fails the check."""
    environment = os.environ | {
        "NO_COLOR": "1",
        "REDOCLY_TELEMETRY": "off",
        "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
        # For the formatter that a generator calls.
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{Path(command[0]).name} failed:\n{done.stdout[-20_000:]}"
    return done.stdout


def python_tool(name: str) -> Path:
    return Path(sys.executable).parent / name


def node_tool(name: str) -> Path:
    tool = TOOLS / "node_modules" / ".bin" / name
    if not tool.exists():
        skip(f"{tool} is not installed: run scripts/install-test-tools")
    return tool


def test_every_answer_to_a_request_made_from_the_document_is_as_it_says(service, tmp_path):
    authorization = [f"--header=Authorization: Bearer {service.token}"] if service.token else []
    output = run(
        python_tool("schemathesis"),
        "run",
        service.url("/openapi.json"),
        "--checks=all",
        f"--max-examples={EXAMPLES}",
        # The same requests each time.
        "--generation-deterministic",
        "--no-color",
        *authorization,
        # Its data base of failures goes here.
        cwd=tmp_path,
        seconds=SCHEMATHESIS_SECONDS,
    )
    operations = json.loads(service.get("/openapi.json").body)["paths"].values()
    assert f"Tested: {sum(map(len, operations))}" in output, output[-2000:]
    assert service.get("/live").status == 200


def test_a_linter_finds_no_error_in_the_document(document):
    output = run(node_tool("redocly"), "lint", "--extends=recommended", "--format=json", document)
    totals = json.loads(output[output.index("{") : output.rindex("}") + 1])["totals"]
    assert totals["errors"] == 0, output


def test_a_generated_typescript_client_has_the_types_of_status_stats_and_reports(document, tmp_path):
    generator = node_tool("openapi-typescript")
    run(generator, document, "--output", tmp_path / "heapray.d.ts", cwd=tmp_path)
    script = tmp_path / "client.ts"
    script.write_text((TOOLS / "client.ts").read_text())
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    run(node_tool("tsc"), *options, script, cwd=tmp_path)


def test_a_generated_python_client_reads_status_stats_and_reports(service, document, tmp_path):
    run(
        python_tool("openapi-python-client"),
        "generate",
        f"--path={document}",
        f"--output-path={tmp_path / 'heapray_client'}",
        "--meta=none",
        f"--config={TOOLS / 'python-client.yaml'}",
        "--fail-on-warning",
        cwd=tmp_path,
    )
    script = (TOOLS / "client.py").read_text()
    told = json.loads(run(sys.executable, "-c", script, service.url(""), service.token, cwd=tmp_path))
    status = service.get(f"{PROFILER}/status", headers=service.authorization).json()
    assert told["pid"] == status["pid"]
    assert told["leak"].endswith("memory-leak/src/leak.rs")
    assert "leak_a_million_numbers" in told["largest"], told
