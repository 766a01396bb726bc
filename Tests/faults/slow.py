"""Long runs: an upstream that hangs at every byte, and hours of intermittent failures."""

import asyncio
import contextlib
import os
import random
import time

from origin import fetch, origin, pattern
from result import Result
from server import Server, free_port


async def hang(options):
    """An upstream that stops after each byte of its response: a status or a truncated body within the deadlines, and nothing stored."""
    port = free_port()
    answer = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    await origin(port, hang_at=answer)
    server = Server(options.binary, port)
    bad, slowest = [], 0.0
    for _ in range(2):
        results = await asyncio.gather(*(fetch(server.gateway, f"/hang/{n}", 12) for n in range(len(answer))))
        for n, (status, body, seconds) in enumerate(results):
            slowest = max(slowest, seconds)
            if seconds > 8 or status == 200 and body is not None or status not in (0, 200, 502, 504):
                bad.append((n, status, seconds))
    met = not bad and server.stop() == 0
    return Result(
        f"an upstream that stops after each of {len(answer)} bytes, twice",
        "a status or a broken-off body within 8 s (limits 1 s), nothing stored",
        f"slowest end {slowest:.1f} s, {len(bad)} wrong {bad[:3] or ''}".rstrip(),
        met,
    )


async def left_and_whole(port, number):
    """Reads part of a large body, then all of it; returns True if the second body is right, or if the origin is unreachable."""
    path = f"/whole/{number}"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        await asyncio.wait_for(reader.readexactly(300_000), 5)
    writer.transport.abort()
    status, body, _ = await fetch(port, path)
    return status != 200 or body == pattern(path)


async def soak(options):
    """Hits, misses, broken clients and a restarting origin for SOAK_SECONDS: memory, descriptors and disk do not grow (SOAK_SEED)."""
    port, seconds = free_port(), int(os.environ.get("SOAK_SECONDS", 3600))
    listener = await origin(port)
    server = Server(options.binary, port)
    begun, marks, number, wrong, asked = time.monotonic(), [], 0, 0, 0
    next_mark, next_fault, down_until = begun, begun + 15, 0
    chance = random.Random(int(os.environ.get("SOAK_SEED", 4)))
    while time.monotonic() - begun < seconds and server.alive:
        now = time.monotonic()
        paths = [f"/hit/{chance.randrange(5000)}" if chance.random() < 0.7 else f"/echo/{number + n}" for n in range(32)]
        number += 32
        *answers, large = await asyncio.gather(
            *(fetch(server.gateway, p) for p in paths), left_and_whole(server.gateway, number // 32 % 200)
        )
        asked += 33
        if now > down_until + 3:
            wrong += sum(status == 200 and body != p.encode() for p, (status, body, _) in zip(paths, answers, strict=True)) + (not large)
        if now > next_fault:
            if listener.is_serving():
                listener.close()
                down_until = now + 5
            else:
                listener = await origin(port)
            next_fault = now + (5 if not listener.is_serving() else 25)
        if now > next_mark:
            marks.append((server.memory(), server.open_files(), server.disk()))
            next_mark = now + max(1, seconds / 200)
        await asyncio.sleep(float(os.environ.get("SOAK_PAUSE", 0.02)))
    alive = server.alive
    middle, end = marks[len(marks) // 2], marks[-1]
    met = alive and wrong == 0 and server.stop() == 0 and end[0] < middle[0] * 1.1 + 8 and end[1] < middle[1] + 40 and end[2] <= 264e6
    return Result(
        f"L2: {seconds} s, {asked:,} requests, the origin away every 30 s",
        "0 wrong answers; nothing grows from the middle to the end",
        f"{wrong} wrong; {middle[0]:.0f} → {end[0]:.0f} MB, {middle[1]} → {end[1]} descriptors, "
        f"{middle[2] / 1e6:.0f} → {end[2] / 1e6:.0f} MB of disk",
        met,
    )
