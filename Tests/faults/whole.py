"""Every body complete: all numbers of clients, sizes, transfer kinds, readers and listeners, compared byte by byte."""

import asyncio
import contextlib
import itertools
import os
import time

from result import Result
from wholeclients import READERS, Client, Manner, Short, Wire
from wholeorigin import SIZES
from wholeprograms import programs
from wholesite import DOORS, KINDS, Site

CLIENTS = (1, 4, 16, 64)
MATRIX = ("1 KB", "100 KB", "1 MB", "8 MB")
# The requests of a fast reader in one cell; other readers send fewer.
REPEATS = {"1 KB": 40, "100 KB": 20, "1 MB": 3, "8 MB": 1}
FULL, ENOUGH = 240, 20_000
# Shares of the available time.
SHARES = {1: 0.2, 4: 0.12, 16: 0.14, 64: 0.22}
RETURNING, RANGES, PROGRAMS = 0.12, 0.06, 0.14


class Clock:
    """Computes the end of a part from its share of the whole time."""

    def __init__(self, seconds):
        self.seconds, self.begun = seconds, time.monotonic()

    @property
    def spent(self):
        return time.monotonic() - self.begun

    def end(self, share):
        return time.monotonic() + self.seconds * share


async def visit(site, client, where, seconds):
    """One cell of the matrix by one client."""
    _, size, kind, reader, door = where
    for _ in range({"fast": REPEATS[size], "leaving": min(5, REPEATS[size])}.get(reader, 1)):
        opened, way = site.door(door, kind)
        target = site.pick(opened.listener, way, size)
        if reader == "leaving":
            for _ in range(site.chance.choice((1, 1, 2, 3))):
                await site.compare(client, opened, target, Manner.of(reader, size, site.chance, seconds), where)
                await away(site)
        await site.compare(client, opened, target, Manner.of("fast" if reader == "leaving" else reader, size, site.chance, seconds), where)
    site.visited.add(where)


async def away(site):
    """Waits for nothing, or as long as a program takes to restart: the abandoned fetch may still run, or have been abandoned too."""
    await asyncio.sleep(site.chance.choice((0, site.chance.uniform(0, 0.05), site.chance.uniform(0.01, 0.05))))


async def matrix(site, count, end, enough):
    """`count` clients visit the cells in random order: all cells if there is time, and repeatedly until it is up."""
    cells = [(f"{count} clients", *cell) for cell in itertools.product(MATRIX, KINDS, READERS, DOORS)]

    def order():
        for turn in itertools.count():
            site.chance.shuffle(cells)
            for where in list(cells):
                if time.monotonic() > end and (not enough or turn and site.tally.bodies.total() >= enough):
                    return
                yield where

    rest = order()

    async def work():
        client = Client(site.context)
        for where in rest:
            # With few clients a slow one would delay all others.
            await visit(site, client, where, 0.25 if count < 16 else 4)
        client.close()

    await asyncio.gather(*(work() for _ in range(count)))
    site.tally.tell(f"{count} clients")


async def returning(site, end, count=4):
    """New large bodies, abandoned three times after some milliseconds or bytes, then read completely."""

    async def work():
        client = Client(site.context)
        while time.monotonic() < end:
            size, door = site.chance.choice(("1 MB", "8 MB", "8 MB", "8 MB", "30 MB")), site.chance.choice(DOORS)
            opened, way = site.door(door, site.chance.choice((*KINDS, "stored", "stored", "stored")))
            target, where = site.fresh(size, way), (f"{count} clients", size, way, "returning", door)
            for _ in range(3):
                manner = (
                    Manner(leave_after=site.chance.uniform(0.005, 0.06))
                    if site.chance.random() < 0.7
                    else Manner(leave_at=site.chance.randrange(SIZES[size][0]))
                )
                await site.compare(client, opened, target, manner, where)
                await away(site)
            await site.compare(client, opened, target, Manner(), where)
        client.close()

    await asyncio.gather(*(work() for _ in range(count)))
    site.tally.tell("given up three times, then whole")


async def download(site, clients):
    """Fetches one file in as many ranges as there are clients, concurrently and in random order; sometimes together with a slow full
    read."""
    size, way, door = site.chance.choice(("1 MB", "8 MB")), site.chance.choice(("stored", "stored", "no-store")), site.chance.choice(DOORS)
    opened, _ = site.door(door, way)
    (name, path), where = site.fresh(size, way), (f"{len(clients)} ranges", size, way, "ranges", door)
    length, beside = SIZES[size][0], site.chance.random() < 0.25
    step = -(-length // len(clients))
    spans = [(start, min(start + step, length) - 1) for start in range(0, length, step)]
    if not beside and way == "stored":
        site.downloads["own"][path] = length
    found = {}

    async def part(client, first, last):
        status, fields, body, _ = await client.get(opened, path, Manner(), f"Range: bytes={first}-{last}\r\n")
        # A server may send the whole body anyway (RFC 9110 §14.2).
        if status == 206 and fields.get("content-range") == f"bytes {first}-{last}/{length}":
            found[first] = bytes(body)
        elif status == 200 and len(body) == length:
            found[first] = bytes(body[first : last + 1])
        else:
            site.tally.add("of another status", where, f"{path}, {first}-{last}: {status} {fields.get('content-range', '')}")

    others = []
    if beside:
        manner = Manner.of("slow", size, site.chance, 1)
        others = [asyncio.create_task(site.compare(clients[-1], opened, (name, path), manner, (*where[:3], "whole beside ranges", door)))]
        await asyncio.sleep(site.chance.uniform(0, 0.1))
    site.chance.shuffle(spans)
    results = await asyncio.gather(*(part(client, *span) for client, span in zip(clients, spans, strict=False)), return_exceptions=True)
    await asyncio.gather(*others)
    for reason in (result for result in results if result):
        if not isinstance(reason, Short):
            raise reason
        site.tally.add("short", where, f"{path} by {opened.listener}: {reason}")
    if len(found) == len(spans):
        site.judge(where, f"{path} by {opened.listener}", name, 200, b"".join(found[first] for first in sorted(found)))


async def ranges(site, end):
    """Two downloaders with eight connections each."""

    async def work():
        clients = [Client(site.context) for _ in range(9)]
        while time.monotonic() < end:
            await download(site, clients[:8])
        for client in clients:
            client.close()

    await asyncio.gather(work(), work())
    site.tally.tell("eight ranges at once")


async def whole(options):
    """{1, 4, 16, 64} clients × four sizes × seven transfer kinds × four readers × three listeners: WHOLE_SECONDS (240), WHOLE_SEED."""
    seconds, seed = int(os.environ.get("WHOLE_SECONDS", str(FULL))), int(os.environ.get("WHOLE_SEED", "1"))
    print(f"   WHOLE_SEED={seed} WHOLE_SECONDS={seconds}", flush=True)
    Wire.opened, clock, site = 0, Clock(seconds), Site(options.binary, seed)
    try:
        weather = asyncio.create_task(site.weather())
        await returning(site, clock.end(RETURNING))
        await ranges(site, clock.end(RANGES))
        used = await programs(site, clock.end(PROGRAMS))
        for count, share in SHARES.items():
            await site.purge()
            last = count == CLIENTS[-1]
            end = clock.begun + seconds if last else clock.end(share)
            await matrix(site, count, end, 0 if seconds < FULL else ENOUGH if last else 1)
        weather.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await weather
        return told(site, clock, seed, used)
    finally:
        site.close()


def told(site, clock, seed, used):
    tally, alive = site.tally, site.server.alive
    ended = site.server.stop() if alive else "gone"
    own, aria, alone = (site.ratio(which) for which in site.downloads)
    cells = len(CLIENTS) * len(MATRIX) * len(KINDS) * len(READERS) * len(DOORS)
    for what, places in tally.faults.items():
        for where, number in places.most_common(8):
            print(f"   {number} {what}: {', '.join(where)}", flush=True)
    wrong, short, odd = (tally.count(what) for what in ("wrong", "short", "of another status"))
    met = not (wrong or short or odd) and ended == 0 and own <= 1.3 and aria <= 1.3 * alone
    sizes = ", ".join(f"{tally.bodies[size]:,} of {size}" for size in SIZES)
    return Result(
        f"{{{', '.join(map(str, CLIENTS))}}} clients × {{{', '.join(MATRIX)}}} × {{{', '.join(KINDS)}}} × {{{', '.join(READERS)}}} readers "
        "by gateway, proxy and decrypted tunnel, nginx with keep-alive behind; readers that come back, ranges, and real programs",
        "no body wrong, none short; each byte of a download in ranges fetched about once (≤ 1.3 ×; aria2c ≤ 1.3 × what it "
        "fetches directly)",
        f"{tally.bodies.total():,} bodies compared ({sizes}) and {tally.parts:,} parts, on {Wire.opened:,} connections, by {used}, "
        f"{site.purges} purges, {len(site.visited):,} of {cells:,} cells, seed {seed}, {clock.spent:.0f} s: {wrong} wrong, {short} short, "
        f"{odd} of another status; {len(site.downloads['own'])} downloads in ranges fetched {own:.2f} ×, "
        f"{len(site.downloads['aria2c'])} by aria2c {aria:.2f} × ({alone:.2f} × without Rockpool)"
        + (f"; the server's end: {ended}" if ended else ""),
        met,
    )
