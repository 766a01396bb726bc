"""The actions of a server while its disk fails, short enough for thousands of trials; and their building blocks."""

import asyncio
import contextlib

from origin import eventually

STORED = [*(f"/small/{n}" for n in range(6)), *(f"/large/{n}" for n in range(4)), "/huge/0"]
BLOB = 1_200_000


class Scene:
    """`setup` runs before the disk is armed, unless the scene is armed `from_start`; `act` is under test."""

    name, golden, from_start, origin_is_there, cache_limit = "", "plain", False, True, "64 MB"
    reads = ["/small/0", "/small/5", "/large/0", "/large/3", "/huge/0"]

    async def prepare(self, bench):
        await plain(bench)

    async def run(self, bench, environment, arm):
        """Runs a server on the failing disk."""
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
        """Checks specific to this scene, made before any start on a sound disk."""


async def warmed(bench):
    """A server with a filled cache and an empty outbox."""
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
    """Waits until all acknowledged writes have arrived with a known outcome, the server has died, or the time is up."""

    def is_over():
        given_up = {line for name, (line, _) in bench.promises.items() if name.startswith("given up")}
        return not bench.server.alive or all(bench.stock.effects[line] for line in bench.client.acknowledged if line not in given_up)

    await eventually(is_over, within, 0.005)
    with contextlib.suppress(Exception):
        await eventually(lambda: not bench.server.alive or not bench.server.operations("pending,inflight,uncertain"), 0.5, 0.02)
