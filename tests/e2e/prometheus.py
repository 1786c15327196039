"""Prometheus's own programs."""

from __future__ import annotations

import shutil
import subprocess

from skipping import skip


def tool(name: str) -> str:
    """The program `name` of Debian's package prometheus. Skips the test where there is none, but not in CI."""
    found = shutil.which(name)
    if found is None:
        skip(f"there is no {name}")
    return found


def promtool(*arguments: object, text: str | None = None) -> str:
    """What promtool prints. Fails with it."""
    command = [tool("promtool"), *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said
