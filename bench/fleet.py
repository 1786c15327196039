#!/usr/bin/env python3
"""Measures `heapray fleet` with simulated replicas, and prints seconds, CPU seconds and peak memory.

    bench/fleet.py HEAPRAY REPORT [REPLICAS] [DELAY]

REPLICAS (500) answer on one port of 127.0.0.1, each below a path of its own. Each has the same REPORT, a capture that
heapray has written, and answers DELAY seconds (0.05) after it was asked. One holds 3.1 times the median. One of 50 never
answers, and nobody listens at the address of another one of 50.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROFILER = "/api/v1/profiler/memray"
WORST = 7
POINTS = 500


def live_events(number):
    """The first events of a live page."""
    held = 310_000_000 if number == WORST else 100_000_000 + number * 10_000
    line = {"function": "shop::cart::add", "file": "src/cart.rs", "line": 9, "live": {"bytes": held, "count": 1}}
    events = {
        "status": {
            "job_name": "shop", "job_version": "2", "program": "shop", "host": f"node-{number}", "pid": number,
            "state": "recording", "sampling": None, "report": None, "live": {"bytes": held, "count": 1},
        },
        "curve": {"points": [[at * 1000, 2 * held, held - (POINTS - at) * 100, 4096] for at in range(POINTS)], "marks": []},
        "top": {"lines": [line] * 3, "seen": {"bytes": held, "count": 3}},
    }
    text = "".join(f"event: {name}\ndata: {json.dumps(value)}\n\n" for name, value in events.items())
    return b"retry: 500\n" + text.encode()


def fate(number):
    return {11: "slow", 23: "dead"}.get(number % 50, "answers")


async def serve(report, delay, listening):
    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        _, number, endpoint = head.split(b" ")[1].split(b"/", 2)
        if fate(int(number)) == "slow":
            await asyncio.sleep(3600)
        await asyncio.sleep(delay)
        body = live_events(int(number)) if endpoint.endswith(b"/live") else report
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body)
        try:
            await writer.drain()
            writer.close()
        except ConnectionError:
            pass

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    listening(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def start(report, delay):
    """Starts the replicas on a thread, and returns their port."""
    ports = []
    ready = threading.Event()
    run = serve(report, delay, lambda port: (ports.append(port), ready.set()))
    threading.Thread(target=asyncio.run, args=[run], daemon=True).start()
    ready.wait()
    return ports[0]


def measure(command):
    """Runs a command, and returns what it says, seconds, CPU seconds and peak memory."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said
    return said, time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(heapray, report, replicas=500, delay=0.05):
    report = Path(report).read_bytes()
    port = start(report, float(delay))
    print(f"{replicas} replicas, a report of {len(report) / 1e6:.2f} MB each")
    with tempfile.TemporaryDirectory() as folder:
        targets, merged, page = (Path(folder) / name for name in ("targets.json", "all.bin", "fleet.html"))
        addresses = [(n, f"127.0.0.1:{1 if fate(n) == 'dead' else port}") for n in range(int(replicas))]
        labels = [{"replica": f"shop-{n}", "__metrics_path__": f"/{n}{PROFILER}/metrics"} for n, _ in addresses]
        groups = [{"targets": [address], "labels": label} for (_, address), label in zip(addresses, labels)]
        targets.write_text(json.dumps(groups))
        for options in (["--no-diff"], ["--html", page], ["--merge", merged]):
            said, seconds, cpu, peak = measure([heapray, "fleet", "--file", targets, *options])
            answered = next(line for line in said.splitlines() if " answered." in line)
            option = options[0]
            print(f"{option:10} {seconds:6.1f} s  {cpu:6.1f} s of CPU  {peak:6.0f} MiB  {answered}")
        print(f"the merged capture has {merged.stat().st_size / 1e6:.1f} MB, the page {page.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
