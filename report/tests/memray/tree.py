"""Runs `memray tree CAPTURE` in a pseudo-terminal until it shows TEXT, then leaves it with the key q.

usage: tree.py MEMRAY CAPTURE TEXT
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

memray, capture, text = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm-256color"
    os.execv(memray, [memray, "tree", capture])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
seen, end, left = b"", time.monotonic() + 120, False
while time.monotonic() < end:
    ready, _, _ = select.select([terminal], [], [], 1)
    if ready:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    if text.encode() in seen and not left:
        os.write(terminal, b"q")
        left = True
else:
    os.kill(pid, 9)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
if not left or status != 0:
    print(f"status {status}, text seen: {left}\n{seen[-3000:]!r}")
    sys.exit(1)
