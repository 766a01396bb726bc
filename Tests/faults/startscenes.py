"""Starts and stops while the disk fails."""

import contextlib
import re
import sqlite3
from pathlib import Path

from origin import eventually
from scene import BLOB, STORED, Scene, network, queue, settled, warmed

SOURCES = Path(__file__).resolve().parents[2] / "Sources/RockpoolStore"


class First(Scene):
    """The very first start: directories, secrets, both schemas; then an entry and a write."""

    name, golden, from_start = "first start", "nothing", True

    async def prepare(self, bench):
        bench.clear()

    async def act(self, bench):
        await bench.client.read("/large/0")
        await network(bench, "offline")
        await bench.client.write("a", 0)


class Recovery(Scene):
    """The start after a kill during deliveries, and the deliveries that follow."""

    name, golden, from_start = "recovery", "killed", True

    async def prepare(self, bench):
        await warmed(bench)
        await network(bench, "offline")
        await queue(bench, ("a", "b"))
        await bench.client.write("c", 0, BLOB)
        # Their responses do not arrive before the end.
        bench.stock.delay = 60
        await network(bench, "auto")
        await eventually(lambda: bench.server.operations("inflight"), 5, 0.01)
        bench.kill()
        bench.stock.delay = 0
        await bench.away()
        # Discard the requests that the origin was still processing.
        bench.stock.remember([])

    async def act(self, bench):
        await settled(bench)


class After(Scene):
    """The start after a fault in another scene, and its subsequent work."""

    golden, from_start = "between", True

    def __init__(self, scene):
        self.name, self.reads, self.judge = f"after {scene.name}", scene.reads, scene.judge

    async def act(self, bench):
        await settled(bench)
        for path in self.reads[:2]:
            await bench.client.read(path)


class Migrate(Scene):
    """The first start on files of the first schema version, with operations and entries."""

    name, golden, from_start = "migrate", "old", True

    async def prepare(self, bench):
        await warmed(bench)
        await network(bench, "offline")
        await queue(bench, ("a", "b"))
        await bench.stop()
        make_old(bench.root / "state/data.sqlite", "Data/DataSchema.swift", "// Version 2")
        make_old(bench.root / "cache/cache.sqlite", "Cache/Entries/CacheSchema.swift", "// Version 3")

    async def act(self, bench):
        await settled(bench)


def make_old(path, source, later):
    """Copies a database's rows into the first version of its tables, as far as it had their columns; the source keeps old schemas
    unchanged, and has `later` before the first of the others that makes them anew."""
    text, found, _ = (SOURCES / source).read_text().partition(later)
    assert found, f"{later} is not in {source}"
    sql = [
        block
        for block in re.findall(r'"""\n(.*?)"""', text, re.S)
        if "CREATE TABLE op (" in block
        or "CREATE TABLE attempt" in block
        or "CREATE TABLE entry (" in block
        or "CREATE TRIGGER entry_came" in block
    ]
    new = path.with_name("new.sqlite")
    path.rename(new)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA page_size = 8192")
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("ATTACH ? AS new", [str(new)])
        for block in sql:
            db.executescript(block)
        db.execute(f"PRAGMA application_id = {db.execute('PRAGMA new.application_id').fetchone()[0]}")
        db.execute("PRAGMA user_version = 1")
        # Triggers recompute the sums and reference counts as the rows are inserted.
        for table in ("body", "blob", "entry", "op", "attempt"):
            columns, others = ([row[1] for row in db.execute(f"PRAGMA {place}.table_info({table})")] for place in ("main", "new"))
            if columns:
                names = ", ".join(name for name in columns if name in others)
                values = re.sub(r"\brefs\b", "0", names)
                db.execute(f"INSERT INTO {table} ({names}) SELECT {values} FROM new.{table}")
        db.execute("DETACH new")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for old in [new, *path.parent.glob("*-wal"), *path.parent.glob("*-shm")]:
        old.unlink()


class Stop(Scene):
    """SIGTERM: writes in-memory state back, truncates both logs, leaves both marks."""

    name = "stop"

    async def setup(self, bench):
        for path in STORED:
            await bench.client.read(path)
        await network(bench, "offline")
        await queue(bench, ("a", "b"))

    async def act(self, bench):
        await bench.stop()
