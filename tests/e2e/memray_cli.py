"""Runs the real memray, at a terminal where it wants one."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from service import DEADLINE_SECONDS


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
    """Runs a memray that draws on a terminal, sends it `then` once it shows `until`, and returns what it drew."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-m", "memray", *map(str, arguments)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 240, 0, 0))
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
    text = drawn.decode(errors="replace")
    assert answered, f"memray {arguments[0]} never showed {until!r}:\n{text}"
    assert os.waitstatus_to_exitcode(status) == 0, f"memray {arguments[0]} failed:\n{text}"
    return text
