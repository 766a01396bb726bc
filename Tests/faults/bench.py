"""A server on a failing disk, restored to a known state before each trial and judged from outside afterwards."""

import asyncio
import contextlib
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

from origin import eventually
from server import Refused, Server, free_port
from shim import Shim
from stock import Client, Stock
from writes import QUEUE, verdict

PATIENCE = 15.0
PLACES = ("cache", "state")
# Operations that will never be sent.
LEFT = "SELECT count(*) FROM op WHERE state IN ('pending', 'inflight', 'uncertain', 'parked', 'conflicted') HAVING count(*) > 0"


class Hung(Exception):
    """The server did not become ready, or did not terminate."""


class Bench:
    """One server, its origin and its disk. `golden` is the initial state of a trial: directories, and the knowledge about them."""

    def __init__(self, options, *, cache_limit="64 MB", data_limit="8 MB"):
        self.disk, self.port, self.bad = Shim(), free_port(), []
        self.server = Server(
            options.binary,
            self.port,
            upstream=QUEUE,
            policy="offline-first",
            cache_limit=cache_limit,
            storage=f"data_limit: {data_limit}",
            start=False,
        )
        self.stock = Stock(self.disk)
        self.client = Client(self.stock, self.server.gateway, self.bad)
        self.goldens, self.slowest = {}, 0.0
        # The number of damaged caches that were set aside.
        self.aside = 0
        # Promises other than the response to a write, each with the number of operations counted when it was made.
        self.promises = {}

    @property
    def root(self):
        return Path(self.server.scratch)

    # MARK: the origin

    async def there(self):
        if not self.stock.is_there:
            await self.stock.open(self.port)

    async def away(self):
        if self.stock.is_there:
            await self.stock.close()

    # MARK: the process

    async def start(self, environment=None, within=PATIENCE):
        """Starts the server; returns the seconds until it was ready. Raises `Refused` or `Hung`."""
        self.server.environment = environment or {}
        timer = threading.Timer(within, lambda: self.server.process.kill())
        timer.start()
        begun = time.monotonic()
        try:
            return await asyncio.to_thread(self.server.start)
        except Refused:
            if time.monotonic() - begun >= within:
                raise Hung(f"not ready after {within:.0f} s") from None
            raise
        finally:
            timer.cancel()

    async def stop(self):
        """Returns the exit status after SIGTERM; a negative one is the signal that ended the process. Raises `Hung`."""
        with contextlib.suppress(ProcessLookupError):
            self.server.process.send_signal(signal.SIGTERM)
        try:
            return await asyncio.to_thread(self.server.process.wait, PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Hung(f"still there {PATIENCE:.0f} s after SIGTERM") from None
        finally:
            self.server.process.stdout.close()

    def kill(self):
        if self.server.alive:
            self.server.kill()

    # MARK: the initial state of a trial

    def keep(self, name):
        """Saves the present state as the golden state `name`."""
        home = self.root.with_name(f"{self.root.name}-{name}")
        shutil.rmtree(home, ignore_errors=True)
        copy(self.root, home)
        client = self.client
        self.goldens[name] = home, (list(self.stock.arrivals), dict(client.issued), dict(client.acknowledged), dict(self.promises))

    def restore(self, name):
        """Restores the directories and the records of origin and client. All restored records have the time of the beginning."""
        home, (arrivals, issued, acknowledged, promises) = self.goldens[name]
        self.clear()
        copy(home, self.root)
        self.bad.clear()
        self.server.process = None
        self.turn_back(
            0,
            [(-1, *arrival[1:]) for arrival in arrivals],
            issued,
            dict.fromkeys(acknowledged, -1),
            {name: (value, -1) for name, (value, _) in promises.items()},
        )

    def turn_back(self, count, arrivals, issued, acknowledged, promises):
        """Discards the arrivals and promises made after operation number `count`."""
        self.stock.remember([arrival for arrival in arrivals if arrival[0] <= count])
        self.client.remember(issued, {line: when for line, when in acknowledged.items() if when <= count})
        self.promises = {name: promise for name, promise in promises.items() if promise[1] <= count}

    def clear(self):
        for place in PLACES:
            shutil.rmtree(self.root / place, ignore_errors=True)
        (self.root / "log").write_text("")

    # MARK: the judgement

    async def judge(self, scene, forgave=False):
        """Starts the server on a sound disk and adds its faults to `bad`.

        If a power cut lost the bytes of a failed sync, SQLite itself may leave a damaged cache: it is no fault if the next start detects
        it, sets it aside and never serves its bytes (docs/storage.md#faults). No such exception applies to the outbox."""
        scene.judge(self)
        if not await self.serve(scene):
            return
        unsound = self.look_into("cache/cache.sqlite")
        if unsound and forgave and (self.root / "cache/damaged").exists():
            await self.serve(scene)
            unsound = self.look_into("cache/cache.sqlite")
            self.aside += not unsound
        self.bad += unsound + self.look_into("state/data.sqlite", LEFT)

    async def serve(self, scene):
        """Starts the server, checks everything that was promised, and stops it; returns True if it started."""
        self.client.is_offline = False
        await self.there()
        try:
            seconds = await self.start()
        except (Refused, Hung) as reason:
            self.bad.append(f"does not start again: {str(reason).splitlines()[-1][:300]}")
            return False
        self.slowest = max(self.slowest, seconds)
        if seconds > 2:
            self.bad.append(f"ready after {seconds:.1f} s")
        # The switch is kept over restarts, and the cut came before the scene had turned it.
        await asyncio.to_thread(self.server.network, "auto")
        await self.delivered()
        for path in scene.reads:
            if await self.client.read(path) != 200 or not self.client.reads[-1][2]:
                self.bad.append(f"GET {path} afterwards: {self.client.reads[-1][1]}, whole: {self.client.reads[-1][2]}")
        try:
            if (status := await self.stop()) != 0:
                self.bad.append(f"the end afterwards: {status}")
        except Hung as reason:
            self.bad.append(f"afterwards: {reason}")
        return True

    async def delivered(self):
        """Checks that every acknowledged write was delivered once, unchanged and in order; and every other promise."""
        stock, client = self.stock, self.client
        given_up = {line for name, (line, _) in self.promises.items() if name.startswith("given up")}
        promised = set(client.acknowledged) - given_up
        await eventually(lambda: all(stock.effects[line] for line in promised), 10, 0.01)
        await eventually(lambda: not self.server.operations("pending,inflight,uncertain"), 5, 0.02)
        lost, doubled, disordered = verdict(stock, Promises(promised))
        if late := [line for name, (line, _) in self.promises.items() if name.startswith("cancelled") and stock.effects[line]]:
            self.bad.append(f"cancelled, and delivered all the same: {late}")
        changed = [line for line, body in self.bodies() if client.issued.get(line) != body]
        for count, what in ((lost, "lost"), (doubled, "doubled"), (disordered, "resources out of order"), (len(changed), "changed")):
            if count:
                self.bad.append(f"{count} of {len(client.acknowledged)} acknowledged writes: {what}")

    def bodies(self):
        for body in self.stock.bodies.values():
            yield re.search(rb'"line": "([^"]+)"', body)[1].decode(), body

    def look_into(self, file, left=None):
        """Returns the faults of a database found by SQLite itself after the stop, without our server."""
        try:
            with contextlib.closing(sqlite3.connect(f"file:{self.root / file}?mode=ro", uri=True)) as db:
                verdict = db.execute("PRAGMA integrity_check").fetchone()[0]
                rows = db.execute(left).fetchall() if left else []
        except sqlite3.Error as error:
            verdict, rows = str(error), []
        return [f"{file}: {verdict}"] * (verdict != "ok") + [f"{file}: {count} operations are left over" for (count,) in rows]

    def discard(self):
        self.kill()
        for home, *_ in self.goldens.values():
            shutil.rmtree(home, ignore_errors=True)
        self.disk.discard()


def copy(source, target):
    """Copies both directories if they exist, without sockets."""
    target.mkdir(exist_ok=True)
    for place in PLACES:
        if (source / place).exists():
            shutil.copytree(source / place, target / place, ignore=shutil.ignore_patterns("*.sock"))


class Promises:
    """The writer's interface that `verdict` needs."""

    def __init__(self, acknowledged):
        self.acknowledged, self.abandoned = list(acknowledged), set()
