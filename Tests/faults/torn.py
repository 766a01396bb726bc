"""Files damaged while the server is stopped: pages, bodies, and a log truncated at every frame."""

import asyncio
import hashlib
import os
import random
import shutil
from pathlib import Path

from origin import eventually, exchange
from result import Result
from server import Problem, Refused, Server, free_port
from writes import QUEUE, Ledger, Writer

PAGE, FRAME, HEADER = 8192, 24 + 8192, 32
SMALL, LARGE = 120, 30


def body_of(path):
    size = 60_000 if path.startswith("/large") else 2_000
    return b"".join(hashlib.sha256(f"{path} {n}".encode()).digest() for n in range(size // 32))


class Shelf(Ledger):
    """Bodies by path, fresh for an hour."""

    def reply(self, method, target, head):
        body = b"" if method != "GET" else body_of(target)
        return b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def harm(path, kind, at, chance):
    """Changes one byte, zeroes a page, or truncates the file."""
    with open(path, "r+b") as f:
        if kind == "truncate":
            f.truncate(at)
        elif kind == "zero":
            f.seek(at)
            f.write(bytes(min(PAGE, path.stat().st_size - at)))
        else:
            at += chance.randrange(min(PAGE, max(1, path.stat().st_size - at)))
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 1 << chance.randrange(8)]))


class Torn:
    def __init__(self, options, port):
        self.server, self.port, self.chance = Server(options.binary, port, upstream=QUEUE, policy="offline-first"), port, random.Random(5)
        self.paths = [f"/small/{n}" for n in range(SMALL)] + [f"/large/{n}" for n in range(LARGE)]
        self.settled = self.server.scratch + "-settled"
        self.golden, self.bad, self.slowest = self.server.scratch + "-golden", [], 0.0
        self.refusals = self.told = self.hits = self.reads = self.trials = 0

    async def prepare(self, shelf):
        """Fills a cache and an outbox, records the log's length at each acknowledgement, then sends SIGKILL."""
        for path in self.paths:
            await exchange(self.server.gateway, "GET", path)
        await asyncio.sleep(2)
        self.server.network("offline")
        log, writer, self.grown = self.state / "data.sqlite-wal", Writer(self.server.gateway), []
        for number in range(40):
            await writer.write(f"r{number % 4}", number)
            self.grown.append(log.stat().st_size)
        self.written = writer.acknowledged
        self.server.kill()
        (self.state / "admin.sock").unlink()
        shutil.copytree(self.server.scratch, self.golden)
        # A second copy after a clean stop: all data is in the database file, and its pages are not checked before serving.
        await shelf.close()
        self.server.start()
        if (status := self.server.stop(keep=True)) != 0:
            self.bad.append(f"the stop ended with {status}")
        (self.state / "admin.sock").unlink(missing_ok=True)
        shutil.copytree(self.server.scratch, self.settled)
        if len(self.written) != 40 or sorted(self.grown) != self.grown:
            self.bad.append("the log began anew while it was filled: try again")

    @property
    def state(self):
        return Path(self.server.scratch, "state")

    @property
    def cache(self):
        return Path(self.server.scratch, "cache")

    def restore(self, golden=None):
        for name in ("cache", "state"):
            shutil.rmtree(Path(self.server.scratch, name), ignore_errors=True)
            shutil.copytree(Path(golden or self.golden, name), Path(self.server.scratch, name))
        self.trials += 1

    def start(self, what):
        try:
            seconds = self.server.start()
        except Refused as refusal:
            self.refusals += 1
            if "recover" not in str(refusal) and "backup" not in str(refusal):
                self.bad.append(f"{what}: an unclear refusal: {str(refusal).splitlines()[-1][:120]}")
            return False
        self.slowest = max(self.slowest, seconds)
        if seconds > 2:
            self.bad.append(f"{what}: ready after {seconds:.1f} s")
        return True

    async def read(self, what, paths):
        """Reads from the cache: each response must be correct or absent."""
        for path in paths:
            status, fields, body, _ = await exchange(self.server.gateway, "GET", path)
            self.reads += 1
            self.hits += status == 200
            if status == 200 and body is not None and body != body_of(path):
                self.bad.append(f"{what}: wrong bytes of {path}")

    async def damaged_cache(self, file, kind, at):
        self.restore()
        what = f"{file} {kind} at {at}"
        harm(self.cache / file, kind, at, self.chance)
        before = self.refusals
        if not self.start(what):
            self.bad.append(f"{what}: a damaged cache stopped the start ({self.refusals - before})")
            return
        await self.read(what, self.chance.sample(self.paths, 25))
        if len(self.server.operations()) != len(self.written):
            self.bad.append(f"{what}: operations are missing")
        self.server.kill()

    async def damaged_bodies(self, kind):
        self.restore()
        files = [f for f in (self.cache / "bodies").rglob("*") if f.is_file()]
        for file in files:
            harm(file, kind, self.chance.randrange(max(1, file.stat().st_size)), self.chance)
        if self.start(f"bodies {kind}"):
            await self.read(f"bodies {kind}", self.paths)
            self.server.kill()
        return len(files)

    async def damaged_data(self, file, kind, at, durable, deliver):
        """The first `durable` writes must be present and be delivered unchanged, or the start must be refused."""
        self.restore(self.settled if file == "data.sqlite" else self.golden)
        what = f"{file} {kind} at {at}"
        harm(self.state / file, kind, at, self.chance)
        if not self.start(what):
            return
        try:
            await self.judge(what, durable, deliver)
        except Problem:
            self.told += 1
        self.server.kill()

    async def judge(self, what, durable, deliver):
        found = len(self.server.operations())
        if found < durable:
            self.bad.append(f"{what}: {durable} writes were durable, {found} are there")
        if deliver:
            shelf = Shelf()
            await shelf.open(self.port)
            self.server.network("auto")
            await eventually(lambda: sum(shelf.effects.values()) >= found, 5)
            await shelf.close()
            # Delivered writes must be unchanged; undelivered ones must be reported.
            left = [o for o in self.server.operations() if o["state"] not in ("delivered", "cancelled", "superseded")]
            strange = set(shelf.effects) - set(self.written)
            if strange or len(shelf.effects) + len(left) < durable:
                self.bad.append(f"{what}: {len(strange)} strange, {len(shelf.effects)} delivered, {len(left)} left of {durable}")


async def torn(options):
    """Pages and bodies flipped, zeroed, truncated; data.sqlite's log truncated at and within every frame (TORN trials of each kind)."""
    port, each = free_port(), int(os.environ.get("TORN", 40))
    shelf = Shelf()
    await shelf.open(port)
    torn = Torn(options, port)
    await torn.prepare(shelf)
    kinds, chance = ("flip", "zero", "truncate"), torn.chance
    try:
        for file in ("cache.sqlite", "cache.sqlite-wal"):
            pages = range(0, (torn.cache / file).stat().st_size, PAGE) if (torn.cache / file).exists() else []
            for at in chance.sample(pages, min(each, len(pages))):
                await torn.damaged_cache(file, chance.choice(kinds), at)
        bodies = sum([await torn.damaged_bodies(kind) for kind in kinds])
        size = (Path(torn.golden) / "state/data.sqlite-wal").stat().st_size
        cuts = [HEADER + n * FRAME + extra for n in range((size - HEADER) // FRAME) for extra in (0, 1, 24, FRAME // 2)]
        for at in [0, 16, *sorted(chance.sample(cuts, min(2 * each, len(cuts))))]:
            await torn.damaged_data("data.sqlite-wal", "truncate", at, sum(grown <= at for grown in torn.grown), False)
        for at in chance.sample(cuts, min(each, len(cuts))):
            whole = sum(grown <= at for grown in torn.grown)
            await torn.damaged_data("data.sqlite-wal", "flip", at, whole, True)
        pages = range(0, (Path(torn.settled) / "state/data.sqlite").stat().st_size, PAGE)
        for at in chance.sample(pages, min(each, len(pages))):
            for kind in kinds:
                await torn.damaged_data("data.sqlite", kind, at, len(torn.written), True)
    finally:
        if torn.server.alive:
            torn.server.kill()
        for golden in (torn.golden, torn.settled):
            shutil.rmtree(golden, ignore_errors=True)
    for entry in torn.bad[:12]:
        print("  ", entry)
    return Result(
        f"D5: {torn.trials} damaged stores ({bodies} bodies, pages of both databases, {len(cuts)} places in the outbox's log, sampled)",
        "starts ≤ 2 s or is refused clearly, 0 wrong bytes, no acknowledged write before the damage silently gone",
        f"{len(torn.bad)} wrong{': ' + '; '.join(torn.bad[:3]) if torn.bad else ''}; slowest start {torn.slowest:.2f} s, "
        f"{torn.refusals} starts refused, {torn.told} times the outbox said that it cannot be read, "
        f"{torn.reads:,} reads of damaged caches, {torn.hits:,} of them hits",
        not torn.bad,
    )
