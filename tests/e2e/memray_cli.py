"""Runs the real memray, at a terminal where it wants one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from memray import FileReader

from running import DEADLINE_SECONDS


def memray(*arguments: str | Path) -> str:
    """What `memray` printed; its failure fails the check."""
    done = subprocess.run(
        [sys.executable, "-m", "memray", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        env=os.environ | {"COLUMNS": "240", "NO_COLOR": "1"},
    )
    assert done.returncode == 0, f"memray {arguments[0]} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def memray_at_a_terminal(*arguments: str | Path, until: str, then: bytes) -> str:
    """Runs a memray that draws on a terminal (large enough for the deepest stack), sends it `then` once it shows `until`, and returns what it drew."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 250, 1000, 0, 0))
        os.environ |= {"TERM": "xterm-256color", "LINES": "250", "COLUMNS": "1000"}
        os.execv(sys.executable, [sys.executable, "-m", "memray", *map(str, arguments)])
    drawn = b""
    answered = False
    deadline = time.monotonic() + DEADLINE_SECONDS
    try:
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    drawn += os.read(terminal, 65536)
                except OSError:  # the other end is closed
                    break
            if not answered and until.encode() in drawn:
                os.write(terminal, then)
                answered = True
        else:
            os.kill(pid, signal.SIGKILL)
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    text = re.sub(r"\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]", "", drawn.decode(errors="replace"))
    assert answered, f"memray {arguments[0]} never showed {until!r}:\n{text}"
    assert os.waitstatus_to_exitcode(status) == 0, f"memray {arguments[0]} failed:\n{text}"
    return text


def leaked_at(report: Path) -> dict[str, int]:
    """Bytes that were never freed, by the place that asked for them: `function file:line`."""
    places: dict[str, int] = {}
    for record in FileReader(str(report)).get_leaked_allocation_records(merge_threads=True):
        frames = record.stack_trace(max_stacks=1)
        place = "{} {}:{}".format(*frames[0]) if frames else "nowhere"
        places[place] = places.get(place, 0) + record.size
    return places


def largest_leak(report: Path) -> tuple[str, int]:
    """The place that leaked most, and how much."""
    return max(leaked_at(report).items(), key=lambda item: item[1])
