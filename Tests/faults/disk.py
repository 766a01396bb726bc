"""A disk that fails at selected operations; power cuts at them; and second faults or power cuts during the recovery."""

import asyncio
import os
import random

import power
import sound
from bench import Bench
from cachescenes import Compact, Evict, Large
from commandscenes import Rotate, StoppedCleanup
from outboxscenes import Blobs, Cancel, Checkpoint, Crowd, Enqueue, Live, Purge, Replay
from result import Result
from shim import SYNC, Shim
from startscenes import After, First, Migrate, Recovery, Stop
from trials import Cut, Pair, Timeline, Trial, named

SCENES = [
    Enqueue(),
    Crowd(),
    Blobs(),
    Large(),
    Replay(),
    Live(),
    Evict(),
    Purge(),
    Cancel(),
    Checkpoint(),
    Compact(),
    Stop(),
    First(),
    Recovery(),
    Migrate(),
    Rotate(),
    StoppedCleanup(),
]
# Each fault once and permanently, unless both are the same.
FAULTS = [
    ("kill", False),
    ("half", False),
    *((fault, sticky) for fault in ("EIO", "ENOSPC", "short", "EIO read") for sticky in (False, True)),
]
SEED = int(os.environ.get("DISK_SEED", 11))


class Sweep:
    """Many trials: each scene has its own server, and as many run at once as there are processors; or only the trial of DISK_ONLY, or
    the scenes of DISK_SCENES."""

    def __init__(self, options):
        self.options, self.bad, self.slowest, self.trials, self.met = options, [], 0.0, 0, 0
        self.operations, self.tried, self.taken, self.aside = {}, 0, 0, 0
        self.turn = asyncio.Semaphore(int(os.environ.get("DISK_WORKERS", os.cpu_count())))
        self.only = os.environ.get("DISK_ONLY")
        wanted = self.only.split(":")[0] if self.only else os.environ.get("DISK_SCENES", "")
        self.scenes = [scene for scene in SCENES if not wanted or scene.name in wanted.split(",")]

    async def each(self, of_scene):
        """Runs `of_scene(bench, scene, chance)` for every scene."""

        async def one(scene):
            async with self.turn:
                bench = Bench(self.options, cache_limit=scene.cache_limit)
                try:
                    bench.clear()
                    await scene.prepare(bench)
                    bench.keep(scene.golden)
                    if self.only:
                        await self.take(bench, await named(self.only, scene, bench))
                    else:
                        await of_scene(bench, scene, random.Random(f"{SEED} {scene.name}"))
                    self.slowest, self.aside = max(self.slowest, bench.slowest), self.aside + bench.aside
                finally:
                    await bench.away()
                    bench.discard()

        await asyncio.gather(*(one(scene) for scene in self.scenes))

    async def count(self, bench, trial):
        """Returns the number of operations without a fault; this run must have no error."""
        await trial.run(bench)
        self.note(bench, trial)
        return trial.count

    def note(self, bench, trial):
        self.trials += 1
        self.met += bool(trial.faults)
        for entry in bench.bad:
            entry = entry.replace(bench.server.scratch, "").replace("\n", " ")
            self.bad.append((str(trial), entry))
            print(f"   {trial} ({trial.met}): {entry}", flush=True)

    async def take(self, bench, trial):
        self.taken += 1
        await trial.run(bench)
        self.note(bench, trial)

    def result(self, goal, target, measured):
        if self.aside:
            measured += f", {self.aside} damaged caches set aside"
        kinds = {entry: trial for trial, entry in reversed(self.bad)}
        examples = "; ".join(f"{entry[:120]} (`{trial}`)" for entry, trial in list(kinds.items())[:3])
        return Result(
            goal,
            target,
            f"{measured}; {len(self.bad)} wrong{': ' if examples else ''}{examples}; slowest start {self.slowest:.2f} s",
            not self.bad,
        )


def some(chance, numbers, size):
    """Selects `size` of the numbers, spread over all; with a size of 0 every one."""
    if not size or size >= len(numbers):
        return list(numbers)
    return [numbers[int((n + chance.random()) * len(numbers) / size)] for n in range(size)]


async def tried(check):
    """Raises if the simulated disk does not work, as the absence of faults would then mean nothing."""
    if os.environ.get("DISK_ONLY"):
        return
    shim = Shim()
    try:
        if wrong := await asyncio.to_thread(check, shim):
            raise AssertionError("; ".join(wrong))
    finally:
        shim.discard()


async def disk(options):
    """The disk fails at each operation of 17 scenes: SIGKILL, EIO, ENOSPC, short writes (DISK of each kind, 0: all; DISK_ONLY)."""
    await tried(sound.check_faults)
    sweep, size = Sweep(options), int(os.environ.get("DISK", 4))

    async def of_scene(bench, scene, chance):
        counts = {kind: await sweep.count(bench, Trial(scene, kind)) for kind in (None, "EIO read")}
        sweep.operations[scene.name] = counts[None]
        for fault, sticky in FAULTS:
            for at in some(chance, range(1, 1 + counts["EIO read" if fault == "EIO read" else None]), size):
                await sweep.take(bench, Trial(scene, fault, at, sticky))

    await sweep.each(of_scene)
    total = sum(sweep.operations.values())
    return sweep.result(
        f"D2: {len(sweep.scenes)} scenes, {total:,} operations on files, × {{kill, half and kill, EIO, ENOSPC, short; once, sticky}}",
        "nothing acknowledged lost or doubled, no wrong byte, both databases whole, no crash of its own, no hang, starts again ≤ 2 s",
        f"{sweep.trials:,} trials ({'every operation' if not size else f'{size} of each kind in each scene'}), {sweep.met:,} faults met",
    )


async def cut(options):
    """A power cut after each operation of the same scenes: unsynced bytes are lost, or some of them (POWER of each mode, 0: all)."""
    await tried(sound.check_power)
    sweep, size = Sweep(options), int(os.environ.get("POWER", 8))

    async def of_scene(bench, scene, chance):
        timeline = await Timeline(Trial(scene)).record(bench)
        sweep.note(bench, timeline.trial)
        sweep.operations[scene.name] = timeline.count
        for mode in power.MODES:
            for at in [0, *some(chance, range(1, timeline.count + 1), size)]:
                await sweep.take(bench, Cut(timeline, at, mode))
        # Bytes of a failed sync are lost at the end, even if later calls succeed: check that no promise depended on them.
        for at in some(chance, [record.number for record in timeline.records if record.call == SYNC and record.number], size):
            failed = await Timeline(Trial(scene, "EIO", at)).record(bench)
            sweep.note(bench, failed.trial)
            for mode in ("all", "chance"):
                await sweep.take(bench, Cut(failed, failed.count, mode))

    await sweep.each(of_scene)
    return sweep.result(
        f"D3: {len(sweep.scenes)} scenes, the power cut after each of {sum(sweep.operations.values()):,} operations; unsynced bytes gone, "
        "gone but for the names, or surviving by chance",
        "no acknowledged write lost or doubled; of the cache no wrong byte; both databases whole; starts again ≤ 2 s",
        f"{sweep.taken:,} power cuts ({'at every operation' if not size else f'{size} of each mode in each scene'})",
    )


async def compound(options):
    """A second fault or power cut during the recovery from the first (COMPOUND pairs, DISK_SEED)."""
    await tried(sound.check_power)
    sweep = Sweep(options)
    each = max(1, int(os.environ.get("COMPOUND", 140)) // len(sweep.scenes))

    async def of_scene(bench, scene, chance):
        timeline = await Timeline(Trial(scene)).record(bench)
        sweep.note(bench, timeline.trial)
        bench.keep("between")
        recovery = Trial(After(scene))
        await recovery.begin(bench)
        for _ in range(each):
            trial = await drawn(bench, scene, chance, timeline, recovery.count)
            await sweep.take(bench, trial)
            sweep.tried += trial.faults > 1

    await sweep.each(of_scene)
    return sweep.result(
        f"D4: pairs of faults: of any kind or power cuts in {len(sweep.scenes)} scenes, then another in the recovery",
        "as D2 and D3",
        f"{sweep.taken:,} pairs, both met in {sweep.tried:,}",
    )


async def drawn(bench, scene, chance, timeline, recovery):
    """Draws a random pair: a power cut or fault, then a fault or power cut; some are a power cut after a failed sync."""
    first = Cut(timeline, chance.randint(1, timeline.count), chance.choice(power.MODES))
    kind = chance.randrange(4)
    if kind:
        first = Trial(scene, *(fault := chance.choice(FAULTS))[:1], chance.randint(1, timeline.count), fault[1])
    if kind == 3:
        failed = await Timeline(Trial(scene, "EIO", first.at)).record(bench)
        return Cut(failed, chance.randint(first.at, max(first.at, failed.count)), chance.choice(power.MODES))
    fault, sticky = chance.choice([*FAULTS, *((mode, False) for mode in power.MODES)])
    # Prefer early operations: a start after a failed one has fewer.
    return Pair(first, fault, min(chance.randint(1, recovery) for _ in range(2)), sticky)
