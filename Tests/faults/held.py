"""A load that is held: 70 % of the measured peak."""

import asyncio
import os
import random
import re
import shutil
import tempfile
import time
from pathlib import Path

from origin import origin
from result import Result, Skip
from server import Server, free_port

CONNECTIONS, SHARE, PEAK_SECONDS = 16, 0.7, 10
# Noise of the allocator; beside it a megabyte an hour may be added.
NOISE = 8


def targets(seed, port):
    """Hits of 5,000 URLs; every twentieth request is passed on."""
    chance = random.Random(seed)
    paths = (f"/echo/{number}" if chance.random() < 0.05 else f"/hit/{chance.randrange(5_000)}" for number in range(50_000))
    return "".join(f"http://127.0.0.1:{port}{path}\n" for path in paths)


async def load(file, seconds, rate=None):
    """(requests a second, failures) of h2load; with a `rate` it sends so many a second."""
    pace = [f"--rps={rate / CONNECTIONS:g}"] if rate else []
    process = await asyncio.create_subprocess_exec(
        *("h2load", "--h1", "-t1", f"-c{CONNECTIONS}", f"-D{seconds}", *pace, "-i", file),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode()
    found = re.search(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded", output)
    if not found:
        raise AssertionError(f"h2load counted nothing: {output[-300:]}")
    done, succeeded = map(int, found.groups())
    return succeeded / seconds, done - succeeded


async def held(options):
    """70 % of the measured peak for HELD_SECONDS: no error, the rate is held, memory does not grow (HELD_SEED)."""
    if not shutil.which("h2load"):
        raise Skip("h2load")
    seconds, port = int(os.environ.get("HELD_SECONDS", 3600)), free_port()
    await origin(port)
    # An origin in Python that shares the machine may be slow; that is no error of the server.
    patience = "connect: 5s, first_byte: 10s, idle: 10s"
    server = Server(options.binary, port, limits="requests_per_connection: 1000000000", patience=patience)
    with tempfile.NamedTemporaryFile("w", prefix="held-", suffix=".urls") as file:
        file.write(targets(os.environ.get("HELD_SEED", "1"), server.gateway))
        file.flush()
        peak, broken = await load(file.name, PEAK_SECONDS)
        marks, begun = [], time.monotonic()
        running = asyncio.create_task(load(file.name, seconds, SHARE * peak))
        while not running.done() and server.alive:
            marks.append((time.monotonic() - begun, server.memory(), server.open_files()))
            await asyncio.wait({running}, timeout=max(1, seconds / 200))
        reached, failures = await running
    alive = server.alive
    cpu = cpu_seconds(server) if alive else 0
    middle, end = marks[len(marks) // 2], marks[-1]
    hours = max(end[0] - middle[0], 1) / 3600
    grown = end[1] - middle[1]
    met = alive and not failures + broken and reached >= 0.95 * SHARE * peak and grown <= NOISE + hours and server.stop() == 0
    return Result(
        f"L1: {seconds} s at 70 % of the peak, hits and 5 % passed on",
        f"0 errors, the rate is held within 5 %, memory from the middle to the end ≤ {NOISE} MB and 1 MB an hour",
        f"peak {peak:,.0f}/s, held {reached:,.0f}/s, {failures + broken} errors; {middle[1]:.0f} → {end[1]:.0f} MB, "
        f"{middle[2]} → {end[2]} descriptors, {cpu:.0f} s of CPU",
        met,
    )


def cpu_seconds(server):
    """User and system time of the server."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
