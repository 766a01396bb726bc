"""No packet is sent after the switch, with every kind of open stream and scheduled work, checked by strace."""

import asyncio
import http.client
import json
import os
import time

from offlinebench import STORED, Bay
from offlineshore import DOWNLOAD
from offlinestreams import ended, opened
from offlinetrace import needed
from origin import eventually, exchange
from result import Result
from server import Problem

WITHIN = 1.0
# Malformed requests: none may change the switch.
MALFORMED = (
    {"mode": "offline", "upstream": ["nope"]},
    {"mode": "offline", "upstream": 3},
    {"mode": 3},
    {"mode": "offline", "extra": 1},
    {"mode": ["offline"]},
    {"mode": "offline", "upstream": {"name": "origin"}},
)


async def warm(bay, names):
    """Stores a copy from each upstream, which also proves that the trace shows such requests."""
    for name in names:
        port = bay.server.gateways[name]
        status, *_ = await exchange(port, "GET", STORED, within=20)
        bay.expect(status == 200, f"the first read of {name}: {status}")


async def back(bay, names):
    """Queued writes are delivered once, and the interrupted download is resumed."""
    await bay.switch("auto")
    lines = [(bay.shores[name], line) for name, line in bay.lines if name in names]
    await eventually(lambda: all(shore.effects[line] for shore, line in lines), 20, 0.1)
    wrong = [line for shore, line in lines if shore.effects[line] != 1]
    bay.expect(lines and not wrong, f"queued writes not delivered once: {wrong[:5]}")
    await resumed(bay, "origin")


async def resumed(bay, name):
    shore = bay.shores[name]
    before = len(shore.ranges)
    status, fields, body, _ = await exchange(bay.server.gateways[name], "GET", "/download", within=30)
    asked = shore.ranges[before:]
    bay.expect(
        status == 200 and body == DOWNLOAD,
        f"the download of {name} after the switch: {status}, {len(body or b''):,} of {len(DOWNLOAD):,} bytes",
    )
    bay.expect(asked and min(asked) > 0, f"the download of {name} was not resumed: asked from {asked}, {fields.get('cache-status')}")


async def everywhere(bay):
    """All upstreams and undeclared hosts, with restarts."""
    names = ("origin", "other", "named")
    await warm(bay, names[:2])
    streams = [*bay.streams("origin"), *bay.streams("other"), bay.free_tunnel()]
    bay.found += await opened(streams)
    switched = await bay.switch("offline")
    await asyncio.sleep(WITHIN)
    bay.found += ended(streams, switched, WITHIN)
    await bay.everything(names, undeclared=True)
    for stream, _ in streams:
        await stream.close()
    bay.silent(names, switched + WITHIN, undeclared=True)
    since = time.time()
    for kill in (False, True):
        if not await bay.restart(kill, dict.fromkeys(("", *names), "offline")):
            return
        await bay.everything(names[:1])
    # Remaining streams have been reported already; from here only new traffic counts.
    bay.silent(names, since, undeclared=True)
    await back(bay, names[:2])


async def single(bay):
    """One upstream is switched off; another one and undeclared hosts keep working."""
    await warm(bay, ("origin", "other"))
    off, on = bay.streams("origin"), [*bay.streams("other"), bay.free_tunnel()]
    bay.found += await opened([*off, *on])
    switched = await bay.switch("offline", "origin")
    await asyncio.sleep(WITHIN)
    bay.found += ended(off, switched, WITHIN)
    for stream, _ in on:
        bay.expect(stream.ended is None and time.time() - stream.last < WITHIN, f"{stream.name} did not go on")
    await bay.everything(("origin",))
    for stream, _ in [*off, *on]:
        await stream.close()
    status, *_ = await exchange(bay.server.gateways["other"], "GET", f"/v1/items/{time.time()}")
    bay.expect(status == 200, f"a read of the other upstream: {status}")
    status = await bay.write("other", "other-live")
    bay.expect(status == 200, f"a write to the other upstream: {status}")
    bay.silent(("origin",), switched + WITHIN)
    since = time.time()
    for kill in (False, True):
        if not await bay.restart(kill, {"": "auto", "origin": "offline", "other": "auto"}):
            return
    bay.silent(("origin",), since)
    await bay.switch("auto", "origin")
    await back(bay, ("origin", "other"))


async def broken_off(bay):
    """A download interrupted by the switch is resumed, without a restart in between."""
    streams = [entry for entry in bay.streams("origin") if "download" in entry[0].name]
    bay.found += await opened(streams)
    switched = await bay.switch("offline", "origin")
    await asyncio.sleep(WITHIN)
    bay.found += ended(streams, switched, WITHIN)
    for stream, _ in streams:
        await stream.close()
    await bay.switch("auto", "origin")
    await resumed(bay, "origin")


async def malformed(bay):
    """Malformed requests are 422 and switch nothing."""
    before = await asyncio.to_thread(bay.server.modes)
    for body in MALFORMED:
        status, _ = await asyncio.to_thread(bay.server.put, body)
        bay.expect(status == 422, f"PUT {json.dumps(body)}: {status}")
        now = await asyncio.to_thread(bay.server.modes)
        if now != before:
            bay.add(f"PUT {json.dumps(body)} switched: {now}")
            for name in (None, *(name for name in now if name)):
                await bay.switch("auto", name)


async def from_the_start(bay):
    """Nothing is sent from the start; the manual switch overrides the configuration at the next start."""
    names = ("origin", "other", "named")
    modes = await asyncio.to_thread(bay.server.modes)
    bay.expect(modes[""] == "offline", f"started with the switch at {modes}")
    for name in names:
        status = await bay.write(name, f"{name}-start")
        bay.expect(status == 202, f"a write to {name}: {status}")
    await bay.refusals({name: (bay.shores[name].place, bay.server.gateways[name]) for name in names[:2]})
    await asyncio.sleep(2)
    bay.silent(names, 0, undeclared=True)
    await bay.switch("auto")
    if not bay.words:
        await bay.restart(False, {"": "auto"}, waits=False)
    await eventually(lambda: all(bay.shores[name].effects[f"{name}-start"] for name in names[:2]), 15, 0.1)
    wrong = [name for name in names[:2] if bay.shores[name].effects[f"{name}-start"] != 1]
    bay.expect(not wrong, f"queued writes not delivered once after `auto`: {wrong}")


# (name, function, extra configuration, extra arguments of `serve`)
SCENES = {
    "all": (everywhere, "", ()),
    "one of two": (single, "", ()),
    "broken off": (broken_off, "", ()),
    "malformed": (malformed, "", ()),
    "network: offline": (from_the_start, "network: offline", ()),
    "serve --offline": (from_the_start, "", ("--offline",)),
}


async def act(options, name):
    """(faults found, number of traced calls to the upstreams' addresses)."""
    scene, top, words = SCENES[name]
    bay = Bay(options, name, top, words)
    try:
        if await bay.open():
            await scene(bay)
    except (Problem, OSError, http.client.HTTPException) as error:
        bay.add(f"could not go on: {error!r:.200}")
    found = await bay.close()
    return found, sum(bay.server.trace.count(shore.place) for shore in bay.shores.values())


async def offline(options):
    """No packet is sent after `network offline`, by strace: open streams, restarts, commands, one upstream of two; OFFLINE_SCENES."""
    needed()
    chosen = [name for name in os.environ.get("OFFLINE_SCENES", "").split(",") if name] or list(SCENES)
    found, shown, begun = [], 0, time.monotonic()
    for name in chosen:
        wrong, calls = await act(options, name)
        found, shown = found + wrong, shown + calls
        for what in wrong:
            print(f"   {what}", flush=True)
    return Result(
        f"`network offline` under strace: {', '.join(chosen)}",
        f"what is open ends within {WITHIN:.0f} s, then no packet to an upstream or to DNS, over SIGTERM and SIGKILL; writes wait and go "
        "out once; a download goes on where it broke off; a malformed switch is 422",
        f"{len(found)} found; the trace shows {shown:,} calls to the upstreams' addresses in all; {time.monotonic() - begun:.0f} s",
        not found,
    )
