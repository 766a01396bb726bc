"""Bodies that are stored, evicted and cleaned up while the disk fails."""

import asyncio

from scene import Scene, network, queue, warmed


class Large(Scene):
    """Bodies that are stored as files of the cache, and small ones."""

    name, reads = "large bodies", [*Scene.reads, "/huge/new", "/large/new", "/large/newer"]

    async def act(self, bench):
        for path in ("/huge/new", "/large/new", "/small/new", "/large/newer", "/huge/0"):
            await bench.client.read(path)


class Evict(Scene):
    """A full cache stores more entries."""

    name, golden, cache_limit = "evict", "full", "6 MB"

    async def prepare(self, bench):
        await warmed(bench)
        for number in range(80):
            await bench.client.read(f"/large/fill{number}")
        await bench.stop()

    async def act(self, bench):
        for number in range(6):
            await bench.client.read(f"/large/more{number}")


class Compact(Scene):
    """A cleanup that removes as much as possible and returns the pages by VACUUM."""

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
