"""What a server does while its disk fails: each scene from a state of its own, short enough for thousands of trials."""
import asyncio
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

from origin import eventually

SOURCES = Path(__file__).resolve().parents[2] / "Sources/RockpoolStore"
STORED = [*(f"/small/{n}" for n in range(6)), *(f"/large/{n}" for n in range(4)), "/huge/0"]
BLOB = 1_200_000


class Scene:
    """`setup` is before the disk is armed, unless the scene is armed `from_start`; `act` is what is under test."""
    name, golden, from_start, origin_is_there, cache_limit = "", "plain", False, True, "64 MB"
    reads = ["/small/0", "/small/5", "/large/0", "/large/3", "/huge/0"]

    async def prepare(self, bench):
        await plain(bench)

    async def run(self, bench, environment, arm):
        """A server on the failing disk."""
        if self.from_start:
            arm()
        await bench.start(environment)
        if not self.from_start:
            await self.setup(bench)
            arm()
        await self.act(bench)

    async def setup(self, bench):
        pass

    async def act(self, bench):
        raise NotImplementedError

    def judge(self, bench):
        """What only this scene has to answer for, before anything starts on a sound disk."""


async def warmed(bench):
    """A server with a cache that has been read from, and an empty outbox."""
    await bench.there()
    await bench.start()
    for path in STORED:
        await bench.client.read(path)


async def plain(bench):
    await warmed(bench)
    await bench.stop()


async def queue(bench, names, each=2, size=0):
    for number in range(each):
        for name in names:
            await bench.client.write(name, number, size)


async def network(bench, mode):
    bench.client.is_offline = mode == "offline"
    await asyncio.to_thread(bench.server.network, mode)


async def settled(bench, within=1.5):
    """Until everything acknowledged has arrived and its outcome is known, the server is dead, or nothing comes of it."""
    def is_over():
        given_up = {line for line, _ in bench.promises.values()}
        return not bench.server.alive or all(bench.stock.effects[line] for line in bench.client.acknowledged if line not in given_up)
    await eventually(is_over, within, 0.005)
    with contextlib.suppress(Exception):
        await eventually(lambda: not bench.server.alive or not bench.server.operations("pending,inflight,uncertain"), 0.5, 0.02)


class Enqueue(Scene):
    """Writes while the origin is away: into rows, one of several pages."""
    name, origin_is_there = "enqueue", False

    async def act(self, bench):
        await queue(bench, ("a", "b"))
        await bench.client.write("c", 0, 20_000)


class Blobs(Scene):
    """Writes too large for a row, and a small one after."""
    name, origin_is_there = "blobs", False

    async def act(self, bench):
        await bench.client.write("a", 0, BLOB)
        await bench.client.write("b", 0, BLOB + 1)
        await bench.client.write("a", 1)


class Crowd(Scene):
    """Four clients that write at once: their commits share transactions, and fail together."""
    name, origin_is_there = "crowd", False

    async def act(self, bench):
        async def one(name):
            await bench.client.write(name, 0)
            await bench.client.write(name, 1, 20_000)
            await bench.client.write(name, 2)
        await asyncio.gather(*(one(name) for name in "abcd"))


class Large(Scene):
    """Bodies that become files of the cache, and small ones."""
    name, reads = "large bodies", [*Scene.reads, "/huge/new", "/large/new", "/large/newer"]

    async def act(self, bench):
        for path in ("/huge/new", "/large/new", "/small/new", "/large/newer", "/huge/0"):
            await bench.client.read(path)


class Replay(Scene):
    """What was queued is delivered: leases, outcomes."""
    name = "replay"

    async def setup(self, bench):
        await network(bench, "offline")
        await queue(bench, ("a", "b"))
        await bench.client.write("c", 0, BLOB)

    async def act(self, bench):
        await network(bench, "auto")
        await settled(bench)


class Live(Scene):
    """Writes to an origin that is there, of which two get no answer: they are kept, and sent again. One is too large for a row."""
    name = "live"

    async def act(self, bench):
        bench.stock.mute |= {"a-1", "b-0"}
        await queue(bench, ("a", "b"))
        await bench.client.write("c", 0, BLOB)
        await settled(bench)


class Evict(Scene):
    """A full cache takes in more."""
    name, golden, cache_limit = "evict", "full", "6 MB"

    async def prepare(self, bench):
        await warmed(bench)
        for number in range(80):
            await bench.client.read(f"/large/fill{number}")
        await bench.stop()

    async def act(self, bench):
        for number in range(6):
            await bench.client.read(f"/large/more{number}")


class Purge(Scene):
    """Entries are removed by prefix; operations past their keeping are written down and purged."""
    name, golden = "purge", "ended"

    async def prepare(self, bench):
        await warmed(bench)
        await network(bench, "offline")
        await queue(bench, ("a", "b"), 3)
        await bench.client.write("c", 0, BLOB)
        await network(bench, "auto")
        await settled(bench)
        await bench.stop()
        with contextlib.closing(sqlite3.connect(bench.root / "state/data.sqlite")) as db, db:
            db.execute("UPDATE op SET ended_at = 1000 WHERE state = 'delivered'")

    async def act(self, bench):
        call = bench.server.call
        await asyncio.to_thread(call, "DELETE", f"/v1/cache?prefix=http://127.0.0.1:{bench.port}/large/")
        await asyncio.to_thread(call, "POST", "/v1/storage/cleanup", {"aggressive": False})


class Cancel(Scene):
    """Queued writes are taken back; what was said to be is never sent."""
    name = "cancel"

    async def setup(self, bench):
        await network(bench, "offline")
        await queue(bench, ("a", "b"), 3)

    async def act(self, bench):
        for line in ("a-1", "b-0", "b-2"):
            bench.promises[f"asked to cancel {line}"] = line, bench.disk.count
            answer = await asyncio.to_thread(bench.server.call, "POST", f"/v1/operations/{bench.client.ids[line]}/cancel")
            if answer.get("state") == "cancelled":
                bench.promises[f"cancelled {line}"] = line, bench.disk.count
        await network(bench, "auto")
        await settled(bench)


class Checkpoint(Scene):
    """Writes until the log of the outbox has been copied back."""
    name, origin_is_there = "checkpoint", False

    async def act(self, bench):
        await queue(bench, ("a", "b"), 3, 60_000)


class Compact(Scene):
    """A cleanup that takes all there is to take, and gives the pages back by VACUUM."""
    name, golden = "compact", "loose"

    async def prepare(self, bench):
        await warmed(bench)
        for number in range(40):
            await bench.client.read(f"/small/fill{number}")
        await asyncio.to_thread(bench.server.call, "DELETE", f"/v1/cache?prefix=http://127.0.0.1:{bench.port}/small/fill")
        await network(bench, "offline")
        await queue(bench, ("a",), 2, 60_000)
        await bench.stop()

    async def setup(self, bench):
        await network(bench, "offline")

    async def act(self, bench):
        await asyncio.to_thread(bench.server.call, "POST", "/v1/storage/cleanup", {"aggressive": True, "vacuum": True})


class Stop(Scene):
    """SIGTERM: what is only in memory written back, both logs cut, both marks left."""
    name = "stop"

    async def setup(self, bench):
        for path in STORED:
            await bench.client.read(path)
        await network(bench, "offline")
        await queue(bench, ("a", "b"))

    async def act(self, bench):
        await bench.stop()


class First(Scene):
    """The first start of all: directories, secrets, both schemas; then an entry and a write."""
    name, golden, from_start = "first start", "nothing", True

    async def prepare(self, bench):
        bench.clear()

    async def act(self, bench):
        await bench.client.read("/large/0")
        await network(bench, "offline")
        await bench.client.write("a", 0)


class Recovery(Scene):
    """The start after a kill in the middle of deliveries, and what it goes on to do."""
    name, golden, from_start = "recovery", "killed", True

    async def prepare(self, bench):
        await warmed(bench)
        await network(bench, "offline")
        await queue(bench, ("a", "b"))
        await bench.client.write("c", 0, BLOB)
        # Their answers do not come before the end.
        bench.stock.delay = 60
        await network(bench, "auto")
        await eventually(lambda: bench.server.operations("inflight"), 5, 0.01)
        bench.kill()
        bench.stock.delay = 0
        await bench.away()
        # What the origin was still busy with does not arrive later.
        bench.stock.remember([])

    async def act(self, bench):
        await settled(bench)


class Migrate(Scene):
    """The first start on the files of the first version, with operations and entries."""
    name, golden, from_start = "migrate", "old", True

    async def prepare(self, bench):
        await warmed(bench)
        await network(bench, "offline")
        await queue(bench, ("a", "b"))
        await bench.stop()
        make_old(bench.root / "state/data.sqlite", ["Data/DataSchema+Version1.swift"])
        make_old(bench.root / "cache/cache.sqlite", ["Cache/CacheSchema.swift"])

    async def act(self, bench):
        await settled(bench)


def make_old(path, sources):
    """Puts the rows of a database into the first version of its tables, as far as that had them: history in the sources, never edited."""
    text = "".join((SOURCES / source).read_text() for source in sources)
    sql = [block for block in re.findall(r'"""\n(.*?)"""', text, re.S) if "CREATE TABLE op (" in block or "CREATE TABLE attempt" in block
           or "CREATE TABLE entry (" in block or "CREATE TRIGGER entry_came" in block]
    new = path.with_name("new.sqlite")
    shutil.move(path, new)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA page_size = 8192")
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("ATTACH ? AS new", [str(new)])
        for block in sql:
            db.executescript(block)
        db.execute(f"PRAGMA application_id = {db.execute('PRAGMA new.application_id').fetchone()[0]}")
        db.execute("PRAGMA user_version = 1")
        # The sums and counts of references come by triggers as the rows do.
        for table in ("body", "blob", "entry", "op", "attempt"):
            columns, others = ([row[1] for row in db.execute(f"PRAGMA {place}.table_info({table})")] for place in ("main", "new"))
            if columns:
                names = ", ".join(name for name in columns if name in others)
                values = re.sub(r"\brefs\b", "0", names)
                db.execute(f"INSERT INTO {table} ({names}) SELECT {values} FROM new.{table}")
        db.execute("DETACH new")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    new.unlink()
    subprocess.run(["rm", "-f", f"{path}-wal", f"{path}-shm", f"{new}-wal", f"{new}-shm"], check=True)


class Rotate(Scene):
    """`rockpool ca rotate`: the authority is the old one or the new one, whole, and the new one once that was said."""
    name, golden = "rotate", "authority"

    async def prepare(self, bench):
        await plain(bench)
        self.call(bench, "init")

    async def run(self, bench, environment, arm):
        arm()
        if new := await asyncio.to_thread(self.call, bench, "rotate", environment):
            bench.promises["authority"] = new, bench.disk.count

    @staticmethod
    def call(bench, verb, environment=None):
        """The fingerprint; nothing when it did not end well."""
        done = subprocess.run([bench.server.binary, "ca", verb, "--config", bench.root / "rockpool.yaml", "--format", "json"],
                              env={**os.environ, "SWIFT_BACKTRACE": "enable=no", **(environment or {})}, capture_output=True, timeout=20)
        if done.returncode < 0 and not (done.returncode == -9 and bench.disk.block.faults):
            bench.bad.append(f"ca {verb} died of signal {-done.returncode}")
        return json.loads(done.stdout)["fingerprint"] if done.returncode == 0 else None

    def judge(self, bench):
        found = self.call(bench, "show")
        if found is None or found != bench.promises.get("authority", [found])[0]:
            bench.bad.append(f"the authority is {found}, promised: {bench.promises}")


class After(Scene):
    """What follows a fault in another scene: the next start, and what it goes on to do."""
    golden, from_start = "between", True

    def __init__(self, scene):
        self.name, self.reads, self.judge = f"after {scene.name}", scene.reads, scene.judge

    async def act(self, bench):
        await settled(bench)
        for path in self.reads[:2]:
            await bench.client.read(path)


SCENES = [Enqueue(), Crowd(), Blobs(), Large(), Replay(), Live(), Evict(), Purge(), Cancel(), Checkpoint(), Compact(), Stop(), First(), Recovery(),
          Migrate(), Rotate()]
