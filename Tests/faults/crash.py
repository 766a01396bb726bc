"""A server that crashes repeatedly, and a supervisor that restarts it."""

import asyncio
import os
import random
import signal
import time

from origin import eventually, exchange, origin
from result import Result
from server import Server, free_port
from writes import QUEUE, Ledger, Writer, verdict


async def attend(ledger, port, is_there=True):
    """Opens or closes the origin, unless it already is."""
    if is_there and not ledger.server.is_serving():
        await ledger.open(port)
    elif not is_there and ledger.server.is_serving():
        await ledger.close()


async def restart(options):
    """SIGSEGV and SIGKILL alternately (RESTARTS, RESTARTS_FROM), with four clients writing and the origin slow, away or there."""
    first, times, port = int(os.environ.get("RESTARTS_FROM", 1)), int(os.environ.get("RESTARTS", 200)), free_port()
    ledger = Ledger(delay=0.005)
    await ledger.open(port)
    server = Server(options.binary, port, upstream=QUEUE + ", probe: { path: /healthz, interval: 1s, expect: 204 }")
    writer, over, seconds = Writer(server.gateway), False, []

    async def write(resource):
        number = 0
        while not over:
            await writer.write(resource, number, 5)
            number += 1
            await asyncio.sleep(0.002)

    tasks = [asyncio.create_task(write(f"r{n}")) for n in range(4)]
    for turn in range(first, first + times):
        await attend(ledger, port, is_there=turn % 10 not in (4, 5, 6))
        await asyncio.sleep(random.Random(turn).random() * 0.3)
        begun = time.monotonic()
        server.kill(signal.SIGSEGV if turn % 2 else signal.SIGKILL)
        await asyncio.to_thread(server.start)
        seconds.append(time.monotonic() - begun)
    over = True
    await attend(ledger, port)
    await asyncio.gather(*tasks)
    drained = await eventually(lambda: not server.operations("pending,inflight,uncertain"), 60, 0.5)
    stuck = [o for o in server.operations("pending,inflight,uncertain,parked,dead,conflicted")]
    lost, doubled, disordered = verdict(ledger, writer)
    kills = sum(turn % 2 == 0 for turn in range(first, first + times))
    met = lost == doubled == disordered == 0 and drained is not None and not stuck and max(seconds) <= 1 and server.stop() == 0
    await ledger.close()
    return Result(
        f"C3, D1: {kills} SIGKILLs and {times - kills} SIGSEGVs under a supervisor, four clients writing",
        "ready again ≤ 1 s, nothing lost, no effect twice",
        f"ready after {sorted(seconds)[len(seconds) // 2]:.2f} s, {max(seconds):.2f} s at most, death included; "
        f"{len(writer.acknowledged):,} acknowledged ({writer.queued:,} by 202), {ledger.requests:,} requests: "
        f"{lost} lost, {doubled} doubled, {disordered} out of order, {len(stuck)} left",
        met,
    )


async def stops(options):
    """SIGTERM as soon as the server is ready after a crash, while the stores are still being checked (STOPS times)."""
    times, port = int(os.environ.get("STOPS", 30)), free_port()
    await origin(port)
    server, ends = Server(options.binary, port, upstream=QUEUE), {}
    for number in range(300):
        await exchange(server.gateway, "GET", f"/hit/{number}" + "x" * 2000)
    for _ in range(times):
        server.kill()
        server.start()
        status = server.stop(keep=True)
        ends[status] = ends.get(status, 0) + 1
        server.start()
    return Result(
        f"{times} times SIGTERM right after a start that follows a crash",
        "each ends with 0",
        ", ".join(f"{count} × {status}" for status, count in sorted(ends.items())),
        list(ends) == [0],
    )
