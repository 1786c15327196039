"""Runs the `heapray` command."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from running import DEADLINE_SECONDS
from service import TARGET

# Of the build that the crates' own tests made.
HEAPRAY = TARGET / "debug" / "heapray"


def heapray(*arguments: str | Path) -> str:
    """What it printed; its failure fails the check."""
    done = subprocess.run(
        [HEAPRAY, *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"COLUMNS": "240"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
