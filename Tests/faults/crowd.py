"""Many clients at once: idle, slow, active, and more than the available descriptors."""

import asyncio
import os
import time

from origin import fetch, origin, percentiles
from result import Result
from server import Server, free_port


async def crowd(options):
    """Idle connections, slow heads and slow readers beside an ordinary client; then as many active ones as configured (IDLE, ACTIVE)."""
    port = free_port()
    await origin(port)
    idle, active = int(os.environ.get("IDLE", 2000)), int(os.environ.get("ACTIVE", 200))
    server = Server(options.binary, port, limits=f"connections: {idle + 3 * active + 100}")
    (_, before, _), rss = await percentiles(server.gateway), server.memory()
    held = []
    for _ in range(idle):
        held.append(await asyncio.open_connection("127.0.0.1", server.gateway))
    for number in range(2 * active):
        pair = await asyncio.open_connection("127.0.0.1", server.gateway, limit=1024)
        pair[1].write(b"GET /hit HTTP/1.1\r\nX-A: " if number % 2 else b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if number % 2 == 0:
            pair[1].transport.pause_reading()
        held.append(pair)
    await asyncio.sleep(1)
    _, during, wrong = await percentiles(server.gateway)
    busy = await asyncio.gather(*(fetch(server.gateway, f"/echo/{n}", 20) for n in range(active)))
    right = sum(body == f"/echo/{n}".encode() for n, (_, body, _) in enumerate(busy))
    peak = server.memory()
    for _, writer in held:
        writer.close()
    met = wrong == 0 and right == active and server.stop() == 0 and during < 2 * before and peak - rss < 64
    return Result(
        f"L3: {idle} idle, {active} slow heads, {active} slow readers",
        "an ordinary client's p99 < 2 ×, memory < +64 MB, all at work served",
        f"p99 {before:.1f} → {during:.1f} ms, {right}/{active} at work served, {rss:.0f} → {peak:.0f} MB resident",
        met,
    )


async def idle(options):
    """Ten thousand idle connections (CROWD) after one request each, and a thousand active ones (WORKERS), ten requests each."""
    port = free_port()
    await origin(port)
    idle, active, each = int(os.environ.get("CROWD", 10_000)), int(os.environ.get("WORKERS", 1000)), 10
    server = Server(
        options.binary,
        port,
        timeouts="head: 60s, body: 30s, idle: 10m",
        limits=f"connections: {idle + active + 100}, connections_per_address: {idle + active + 100}",
    )
    await fetch(server.gateway, "/hit")
    rest, request = server.memory(), b"GET /hit HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def ask(reader, writer, request, body, within=60):
        begun = time.monotonic()
        writer.write(request)
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), within)
            return head.startswith(b"HTTP/1.1 200") and await reader.readexactly(len(body)) == body, time.monotonic() - begun
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            return False, time.monotonic() - begun

    held, greeted = [], 0
    for _ in range(idle):
        held.append(await asyncio.open_connection("127.0.0.1", server.gateway))
        greeted += (await ask(*held[-1], request, b"/hit"))[0]
    crowded, times = server.memory(), []

    async def work(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.gateway)
        for turn in range(each):
            path = f"/echo/{number}-{turn}" if turn % 5 == 0 else "/hit"
            ok, seconds = await ask(reader, writer, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), path.encode())
            times.append((seconds * 1000, ok))
        writer.close()

    server.forget_peak()
    await asyncio.gather(*(work(n) for n in range(active)))
    peak = server.memory("VmHWM")
    again = sum([(await ask(*pair, request, b"/hit"))[0] for pair in held[::10]])
    for _, writer in held:
        writer.close()
    right, slow = sum(ok for _, ok in times), sorted(ms for ms, _ in times)
    met = greeted == idle and right == active * each and again == len(held[::10]) and peak <= 512 and server.stop() == 0
    return Result(
        f"{idle:,} idle connections, {active:,} at work",
        "all served, ≤ 512 MB resident",
        f"{right:,}/{active * each:,} answers right ({each} on each, every fifth passed through), p50 {slow[len(slow) // 2]:.0f} ms, "
        f"p99 {slow[int(len(slow) * 0.99)]:.0f} ms with all {active:,} asking at once; "
        f"{rest:.0f} MB at rest, {crowded:.0f} with the crowd, "
        f"{peak:.0f} at most; {again}/{len(held[::10])} of the idle served afterwards",
        met,
    )


async def descriptors(options):
    """More clients than descriptors: connected ones are served, and all are served once descriptors are free."""
    port = free_port()
    await origin(port)
    server = Server(options.binary, port, descriptors=128, limits="connections: 1000")
    held = []
    for _ in range(300):
        try:
            held.append(await asyncio.wait_for(asyncio.open_connection("127.0.0.1", server.gateway), 2))
        except (TimeoutError, OSError):
            break
    await asyncio.sleep(1)
    alive = server.alive
    for _, writer in held:
        writer.close()
    begun = time.monotonic()
    while time.monotonic() - begun < 20:
        if (await fetch(server.gateway, "/hit", 2))[1] == b"/hit":
            break
        await asyncio.sleep(0.1)
    else:
        alive = False
    seconds = time.monotonic() - begun
    return Result(
        f"L3: {len(held)} clients for 128 descriptors",
        "lives, and serves within 20 s of their leaving",
        f"served {seconds:.1f} s after they left",
        alive and server.stop() == 0,
    )
