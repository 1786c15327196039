"""Runs `go tool pprof`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from running import run
from skipping import skip


def top(*arguments: str | Path, directory: Path) -> str:
    """Its table, in bytes. It saves what it fetches in `directory`. The check is skipped where there is no Go."""
    if shutil.which("go") is None:
        skip("go tool pprof, because go is not installed")
    environment = os.environ | {"PPROF_TMPDIR": str(directory), "no_proxy": "127.0.0.1", "TZ": "UTC"}
    return run("go", "tool", "pprof", "-top", "-unit=B", *arguments, environment=environment)
