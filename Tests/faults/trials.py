"""One trial: a scene on a disk that fails at one operation, or with a power cut, then a check on a sound disk."""

import http.client
import random

import power
from bench import Hung
from server import Problem, Refused
from startscenes import After


class Trial:
    """A scene, a fault, and the operation at which it occurs, once or permanently."""

    def __init__(self, scene, fault=None, at=0, sticky=False):
        self.scene, self.fault, self.at, self.sticky, self.met, self.faults, self.count = scene, fault, at, sticky, "", 0, 0

    def __str__(self):
        return f"{self.scene.name}:{self.fault}{'…' if self.sticky else ''}:{self.at}"

    @property
    def kills(self):
        return self.fault in ("kill", "half")

    async def run(self, bench):
        await self.begin(bench)
        await bench.judge(self.scene)

    async def begin(self, bench, journaled=False):
        """Everything except the check."""
        bench.restore(self.scene.golden)
        await self.perform(bench, bench.disk.environment(bench.root, journaled))
        self.met, self.count, self.faults = bench.disk.met, bench.disk.count, bench.disk.block.faults
        bench.disk.disarm()

    async def perform(self, bench, environment):
        """Runs the scene up to the end of the process. Faults are added to `bench.bad`."""
        disk = bench.disk
        await (bench.there() if self.scene.origin_is_there else bench.away())
        try:
            await self.scene.run(bench, environment, lambda: disk.arm(self.fault, self.at, self.sticky))
            if bench.server.alive and not self.kills:
                await bench.client.read("/small/0")
        except Refused as reason:
            if not disk.block.faults:
                bench.bad.append(f"refused to start without a fault: {reason}")
        except Hung as reason:
            bench.bad.append(str(reason))
        except (Problem, OSError, http.client.HTTPException, ValueError) as problem:
            # The admin API of a dying server fails, or responds without JSON.
            if not disk.block.faults:
                bench.bad.append(f"{type(problem).__name__}: {problem}")
        await self.end(bench)

    async def end(self, bench):
        """Kills or stops the server alternately, unless the disk has killed it. Any other death is a fault."""
        if bench.server.process is None:
            return
        if was_alive := bench.server.alive:
            if self.at % 2:
                bench.kill()
            else:
                try:
                    await bench.stop()
                except Hung as reason:
                    bench.bad.append(str(reason))
        status = bench.server.process.wait()
        if status < 0 and not (status == -9 and (was_alive or self.kills and bench.disk.block.faults)):
            bench.bad.append(f"died of signal {-status}: {bench.server.log[-400:]}")


class Timeline:
    """A complete scene with a journal of every operation, from which power cuts are made."""

    def __init__(self, trial):
        self.trial = trial

    async def record(self, bench):
        await self.trial.begin(bench, journaled=True)
        client = bench.client
        self.home, self.records, self.count = bench.goldens[self.trial.scene.golden][0], bench.disk.records(), self.trial.count
        self.known = list(bench.stock.arrivals), dict(client.issued), dict(client.acknowledged), dict(bench.promises)
        return self


class Cut:
    """A power cut after operation `at` of a timeline."""

    def __init__(self, timeline, at, mode):
        self.timeline, self.at, self.mode, self.scene = timeline, at, mode, timeline.trial.scene
        self.met, self.faults = f"after operation {at}", 1 + bool(timeline.trial.fault)

    def __str__(self):
        first = f"{self.timeline.trial}+" if self.timeline.trial.fault else f"{self.scene.name}:"
        return f"{first}power {self.mode}:{self.at}"

    async def run(self, bench):
        await self.begin(bench)
        await bench.judge(self.scene, forgave=self.faults > 1)

    async def begin(self, bench):
        bench.clear()
        bench.bad.clear()
        disk = power.Disk(self.timeline.home, self.timeline.records, self.at)
        disk.leave(bench.root, self.mode, random.Random(str(self)))
        bench.turn_back(self.at, *self.timeline.known)


class Pair:
    """A second fault or power cut during the recovery from the first."""

    def __init__(self, first, fault, at, sticky=False):
        self.first, self.scene = first, first.scene
        self.second = Trial(After(first.scene), fault, at, sticky)
        self.met, self.faults = "", 0

    def __str__(self):
        power_goes = "power " if self.second.fault in power.MODES else ""
        return f"{self.first}+again {power_goes}{self.second.fault}{'…' if self.second.sticky else ''}:{self.second.at}"

    async def run(self, bench):
        await self.first.begin(bench)
        wrong = list(bench.bad)
        bench.keep("between")
        if self.second.fault in power.MODES:
            timeline = await Timeline(Trial(self.second.scene)).record(bench)
            second = Cut(timeline, self.second.at, self.second.fault)
        else:
            second = self.second
        await second.begin(bench)
        self.met, self.faults = f"{self.first.met}, then {second.met}", bool(self.first.faults) + bool(second.faults)
        bench.bad[:0] = wrong
        await bench.judge(self.scene, forgave=isinstance(second, Cut) and bool(self.first.faults))


async def named(text, scene, bench):
    """The trial of that scene with the name `text`, to repeat it; threads may run in another order."""

    def split(part):
        *_, fault, at = part.split(":")
        return fault.strip("…"), int(at), fault.endswith("…")

    head, _, tail = text.partition("+")
    fault, at, sticky = split(head)
    if fault.startswith("power "):
        first = Cut(await Timeline(Trial(scene)).record(bench), at, fault.split()[1])
    else:
        first = Trial(scene, None if fault == "None" else fault, at, sticky)
    if tail.startswith("again "):
        fault, at, sticky = split(tail.removeprefix("again ").removeprefix("power "))
        return Pair(first, fault, at, sticky)
    if tail:
        fault, at, _ = split(tail)
        return Cut(await Timeline(first).record(bench), at, fault.split()[1])
    return first
