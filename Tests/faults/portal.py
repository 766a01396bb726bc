"""A captive portal in place of the API, which appears and disappears while clients read and write."""

import asyncio
import contextlib
import os
import random
import time

from origin import eventually
from portalclients import Doors, Memory, curl, known, read, reader, writer
from portaljudge import by_face, judge
from portalorigin import FACES, Site
from result import Result
from server import Server, free_port

# The demo's configuration; no client writes what another one has read, so that no merge is needed.
UPSTREAM = (
    'idempotency: { honoured: yes }, routes: [{ match: "/v1/images/**", category: assets }], '
    'resources: [{ collection: /v1/notes, item: "/v1/notes/{id}", fields: { /tags: set, /body: ask } }]'
)
PROBE = ", probe: { path: /healthz, interval: 1s, expect: 204 }"
FULL, SETTLED = 600, 30
READERS, WRITERS = 3, 3


class Weather:
    """The portal, an unreachable network, and the API, in random order."""

    def __init__(self, site, chance, faces):
        self.site, self.chance, self.faces = site, chance, faces

    async def run(self, end):
        """Each kind of portal appears once before any repeats; the API is last."""
        order = []
        while time.monotonic() < end:
            await asyncio.sleep(self.chance.uniform(0.8, 3))
            if self.faces is None:
                continue
            if is_away := not self.faces or self.chance.random() < 0.3:
                await self.site.close()
                await asyncio.sleep(self.chance.uniform(0.5, 2))
            if self.faces:
                order = order or self.chance.sample(self.faces, len(self.faces))
                self.site.arrive(order.pop())
            if is_away:
                await self.site.there()
            if self.faces:
                await self.stay()

    async def stay(self):
        await asyncio.sleep(self.chance.uniform(0.05, 0.5) if self.chance.random() < 0.3 else self.chance.uniform(1, 4))
        self.site.leave()

    async def drift(self, chance):
        """Items and lists change continuously."""
        targets = [target for target, _ in known()]
        while True:
            self.site.change(chance.choice(targets))
            await asyncio.sleep(0.1)


async def visit(options, seconds, seed, faces, has_probe):
    """Runs one configuration; returns (site, memory, findings, seconds until all was settled or None, exit status)."""

    def draw(name):
        return random.Random(f"{seed} {has_probe} {name}")

    site = Site(f"{seed} {has_probe}")
    await site.there(free_port())
    server = Server(
        options.binary,
        site.port,
        upstream=UPSTREAM + PROBE * has_probe,
        policy="offline-first",
        patience="connect: 2s, first_byte: 5s, idle: 5s",
    )
    memory, doors, weather = Memory(site, has_probe), Doors(server, site.port), Weather(site, draw("weather"), faces)
    begin = draw("begin")
    for target, accepts in known():
        for accept in accepts:
            await read(memory, doors.pick(begin), target, accept)
    end = time.monotonic() + seconds

    def is_over():
        return time.monotonic() > end

    drift = asyncio.create_task(weather.drift(draw("drift")))
    await asyncio.gather(
        weather.run(end),
        curl(memory, doors, draw("curl"), is_over),
        *(reader(memory, doors, draw(f"r{n}"), is_over) for n in range(READERS)),
        *(writer(memory, doors, f"w{n}", draw(f"w{n}"), is_over) for n in range(WRITERS)),
    )
    settled = await eventually(lambda: not server.operations("pending,inflight,uncertain"), SETTLED, 0.5)
    drift.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await drift
    findings = await judge(server, memory, has_probe)
    return site, memory, findings, settled, server.stop()


def told(site, memory, found, settled, ended):
    """The summary as text; prints examples."""
    for what, words in found.examples:
        print(f"   {'with' if found.has_probe else 'without'} probe, {what}: {words}", flush=True)
    visits = [visit.ended - visit.begun for visit in site.visits]
    left = ", ".join(f"{count} {state}" for state, count in found.left.most_common(4))
    return (
        f"{'with' if found.has_probe else 'without'} probe: {len(visits)} visits ({sum(stay < 0.5 for stay in visits)} under 0.5 s), "
        f"{memory.reads.total():,} reads, {memory.writes.total():,} writes, {found.acknowledged:,} told as done "
        f"({found.queued} queued): of {found.copies + found.bad + found.new} copies {found.bad} replaced, "
        f"{found.new} new ones not the API's, {found.lost_copies} lost; "
        f"{found.portal_reads} reads got the portal for the copy, {found.other_reads} something else; "
        f"acknowledged writes lost {by_face(found.lost)}, stuck {by_face(found.stuck)}; swallowed {by_face(found.swallowed)}; "
        f"{found.twice} twice; "
        + (f"settled in {settled:.1f} s" if settled is not None else f"not settled in {SETTLED} s")
        + (f"; left over: {left}" if left else "")
        + (f"; the server's end: {ended}" if ended else "")
    )


async def portal(options):
    """A captive portal of ten kinds appears repeatedly: PORTAL_SECONDS (600), PORTAL_SEED; PORTAL_FACES: the kinds, or none, or away."""
    seconds, seed = int(os.environ.get("PORTAL_SECONDS", str(FULL))), int(os.environ.get("PORTAL_SEED", "1"))
    chosen = os.environ.get("PORTAL_FACES", ",".join((*FACES, "mixed")))
    faces = {"none": None, "away": []}.get(chosen, chosen.split(","))
    print(f"   PORTAL_SEED={seed} PORTAL_SECONDS={seconds} PORTAL_FACES={chosen}", flush=True)
    words, met = [], True
    for has_probe in (True, False):
        site, memory, found, settled, ended = await visit(options, seconds / 2, seed, faces, has_probe)
        words.append(told(site, memory, found, settled, ended))
        met = met and found.faults == 0 and settled is not None and ended == 0 and memory.reads["good"] > 0 and found.acknowledged > 0
    return Result(
        f"a captive portal in the API's place ({len(faces or ())} kinds), readers and writers by gateway, proxy and curl, seed {seed}",
        "no stored copy replaced or lost, copies served for the portal's answers, every write told as done carried out once "
        "(but what the portal's 204 took, which is the probe's own; without probe but what a visit's first answer or one like the "
        "API's own took, and what is stored for the first time)",
        "; ".join(words),
        met,
    )
