"""Writes that are accepted, sent, cancelled and purged while the disk fails."""

import asyncio
import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path

from scene import BLOB, Scene, network, queue, settled, warmed


class Enqueue(Scene):
    """Writes while the origin is unreachable: stored as rows, one of several pages."""

    name, origin_is_there = "enqueue", False

    async def act(self, bench):
        await queue(bench, ("a", "b"))
        await bench.client.write("c", 0, 20_000)


class Crowd(Scene):
    """Four clients that write concurrently: their commits share transactions, and fail together."""

    name, origin_is_there = "crowd", False

    async def act(self, bench):
        async def one(name):
            await bench.client.write(name, 0)
            await bench.client.write(name, 1, 20_000)
            await bench.client.write(name, 2)

        await asyncio.gather(*(one(name) for name in "abcd"))


class Blobs(Scene):
    """Writes too large for a row, and a small one after them."""

    name, origin_is_there = "blobs", False

    async def act(self, bench):
        await bench.client.write("a", 0, BLOB)
        await bench.client.write("b", 0, BLOB + 1)
        await bench.client.write("a", 1)


class Replay(Scene):
    """Delivery of queued writes: leases, outcomes."""

    name = "replay"

    async def setup(self, bench):
        await network(bench, "offline")
        await queue(bench, ("a", "b"))
        await bench.client.write("c", 0, BLOB)

    async def act(self, bench):
        await network(bench, "auto")
        await settled(bench)


class Live(Scene):
    """Writes to an available origin, of which two get no response: they are kept and sent again. One is too large for a row."""

    name = "live"

    async def act(self, bench):
        bench.stock.mute |= {"a-1", "b-0"}
        await queue(bench, ("a", "b"))
        await bench.client.write("c", 0, BLOB)
        await settled(bench)


class Cancel(Scene):
    """Queued writes are cancelled; a write reported as cancelled is never sent."""

    name = "cancel"

    async def setup(self, bench):
        await network(bench, "offline")
        await queue(bench, ("a", "b"), 3)

    async def act(self, bench):
        for line in ("a-1", "b-0", "b-2"):
            bench.promises[f"given up {line}"] = line, bench.disk.count
            answer = await asyncio.to_thread(bench.server.call, "POST", f"/v1/operations/{bench.client.ids[line]}/cancel")
            if answer.get("state") == "cancelled":
                bench.promises[f"cancelled {line}"] = line, bench.disk.count
        await network(bench, "auto")
        await settled(bench)


class Checkpoint(Scene):
    """Writes until the log of the outbox has been checkpointed."""

    name, origin_is_there = "checkpoint", False

    async def act(self, bench):
        await queue(bench, ("a", "b"), 3, 60_000)


class Purge(Scene):
    """Entries are removed by prefix; expired operations are purged, refused ones only after they have been exported."""

    name, golden = "purge", "ended"

    async def prepare(self, bench):
        await warmed(bench)
        await network(bench, "offline")
        await queue(bench, ("a", "b"), 3)
        await bench.client.write("c", 0, BLOB)
        for number in range(3):
            bench.stock.unwanted.add(line := f"unwanted{number}-0")
            bench.promises[f"given up {line}"] = line, -1
            await bench.client.write(f"unwanted{number}", 0)
        await network(bench, "auto")
        await settled(bench)
        await bench.stop()
        with contextlib.closing(sqlite3.connect(bench.root / "state/data.sqlite")) as db, db:
            db.execute("UPDATE op SET ended_at = 1000 WHERE state IN ('delivered', 'dead')")
            self.refused = {row[0] for row in db.execute("SELECT id FROM op WHERE state = 'dead'")}
            assert len(self.refused) == 3

    async def act(self, bench):
        call = bench.server.call
        await asyncio.to_thread(call, "DELETE", f"/v1/cache?prefix=http://127.0.0.1:{bench.port}/large/")
        await asyncio.to_thread(call, "POST", "/v1/storage/cleanup", {"aggressive": False})

    def judge(self, bench):
        """Checks that every refused operation has its row or its exported line."""
        with tempfile.TemporaryDirectory() as home:
            for file in (bench.root / "state").glob("data.sqlite*"):
                shutil.copy(file, home)
            with contextlib.closing(sqlite3.connect(Path(home, "data.sqlite"))) as db:
                rows = {row[0] for row in db.execute("SELECT id FROM op")}
        lines = "".join(file.read_text() for file in (bench.root / "state").glob("purged-*")).split("\n")
        written = {id for id in self.refused for line in lines if id in line and line.endswith("}")}
        if gone := self.refused - rows - written:
            bench.bad.append(f"purged and not written down: {len(gone)} of {len(self.refused)}")
