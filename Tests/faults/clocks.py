"""Wall clocks that jump, and monotonic clocks with another origin."""

import asyncio
import glob
import json
import os
import shutil
import subprocess
import tempfile
import time
from email.utils import formatdate
from pathlib import Path

from origin import eventually, exchange
from result import Result, Skip
from server import Server, free_port
from writes import QUEUE, Ledger, Writer, verdict

YEAR = 365 * 86_400
# libfaketime treats every absolute timer as one of the wall clock, and also shifts timers of clocks that cannot be set: after a jump back,
# a sleep of a fifth of a second lasted as long as the jump. This library is loaded first and passes timers to the kernel.
TIMERS = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
  return syscall(SYS_timerfd_settime, fd, flags, new, old);
}
"""


NOTES = QUEUE.replace(" }]", " }, { collection: /held, id: /id, version: etag }]")


class Dated(Ledger):
    """/long is fresh for an hour, /short for two seconds; each response contains the number of requests so far, and the true time.
    What is PUT below /held is kept, with a version."""

    def __init__(self):
        super().__init__()
        self.asked, self.held = 0, {}

    def keep(self, target, text):
        """Puts a note, as another client does who does not come by the server."""
        note = json.dumps({"id": target.split("/")[-1], "text": text}).encode()
        self.held[target] = (self.held.get(target, (0,))[0] + 1, note)

    async def answer(self, method, target, head, body):
        if not target.startswith("/held/"):
            return await super().answer(method, target, head, body)
        if method == "PUT":
            self.keep(target, json.loads(body)["text"])
        version, note = self.held.get(target, (0, b""))
        status = b"200 OK" if version else b"404 Not Found"
        return b'HTTP/1.1 %s\r\nETag: "v%d"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' % (
            status,
            version,
            len(note),
            b"" if method == "HEAD" else note,
        )

    def reply(self, method, target, head):
        self.asked += 1
        body, age = str(self.asked).encode(), 3600 if "long" in target else 2
        return (
            f"HTTP/1.1 200 OK\r\nDate: {formatdate(time.time(), usegmt=True)}\r\nCache-Control: max-age={age}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + (b"" if method == "HEAD" else body)
        )


async def clock(options):
    """The wall clock +10 y, −10 y, to 1970, past 2038 and 2106, ± 1 h while serving; then starts with another clock."""
    library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
    if library is None:
        raise Skip("libfaketime (Debian: faketime)")
    if not shutil.which("cc"):
        raise Skip("cc, for timers that libfaketime leaves alone")
    home = tempfile.mkdtemp(prefix="rpf-clock-")
    stamp = Path(home, "stamp")
    subprocess.run(["cc", "-shared", "-fPIC", "-O", "-x", "c", "-o", f"{home}/timers.so", "-"], input=TIMERS.encode(), check=True)

    def turn(seconds):
        Path(home, "next").write_text(f"{seconds:+d}\n")
        os.replace(Path(home, "next"), stamp)

    turn(0)
    site, port = Dated(), free_port()
    await site.open(port)
    # The library changes the environment when first loaded, and Swift locates its arguments relative to it: `nice` absorbs that change.
    command = [
        "env",
        f"LD_PRELOAD={home}/timers.so:{library}",
        f"FAKETIME_TIMESTAMP_FILE={stamp}",
        "FAKETIME_NO_CACHE=1",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
        "nice",
        "-n",
        "0",
    ]
    server = Server(
        options.binary,
        port,
        command=command,
        policy="offline-first",
        upstream=NOTES + ', routes: [{ match: "/long/**", category: critical }]',
    )
    writer, bad, deliveries = Writer(server.gateway), [], []
    now = int(time.time())
    jumps = {
        "+10 y": 10 * YEAR,
        "−10 y": -10 * YEAR,
        "1970": 60 - now,
        "2038+": 2_147_483_700 - now,
        "2106+": 4_294_967_400 - now,
        "+1 h": 3600,
        "−1 h": -3600,
        "now": 0,
    }

    async def read(path, where):
        status, fields, body, _ = await exchange(server.gateway, "GET", path)
        if int(fields.get("age", "0")) < 0 or status != 200 or body is None:
            bad.append(f"{where}: {path} {status} Age {fields.get('age')}")
        return body

    async def entries():
        return len(server.call("GET", "/v1/cache?limit=100")["items"])

    for name, offset in jumps.items():
        turn(0)
        await read(f"/long/{name.encode().hex()}", name)
        await read("/short/before", name)
        count = await entries()
        await site.close()
        queued = len(writer.acknowledged)
        for number in range(3):
            await writer.write("c" + name.encode().hex(), number)
        turn(offset)
        await read(f"/long/{name.encode().hex()}", f"{name}, offline")
        if await entries() < count:
            bad.append(f"{name}: {count} entries became {await entries()}")
        await site.open(port)
        lines = writer.acknowledged[queued:]
        delivered = await eventually(lambda lines=lines: all(site.effects[line] for line in lines), 20)
        deliveries.append(delivered or 20)
        if delivered is None or len(writer.acknowledged) != queued + 3:
            bad.append(
                f"{name}: {len(writer.acknowledged) - queued} queued, not delivered, upstream "
                + server.call("GET", "/v1/network")["upstreams"][0]["reachability"]
            )
        await read("/short/within", name)
        await asyncio.sleep(3.2)
        for path in ("/short/before", "/short/within"):
            asked = site.asked
            await read(path, name)
            if site.asked == asked:
                bad.append(f"{name}: {path} is fresh 3 s after its 2")
        turn(0)
        await asyncio.sleep(0.1)
        asked = site.asked
        await read("/short/within", f"back from {name}")
        await asyncio.sleep(2.2)
        await read("/short/within", f"back from {name}")
        if site.asked == asked:
            bad.append(f"back from {name}: what was stored there stays fresh")
    await behind(server, site, port, writer, bad, turn)
    await overtaken(server, site, port, bad, turn)
    if server.stop(keep=True) != 0:
        bad.append("the server's end")
    for path in glob.glob(f"/dev/shm/*faketime_*_{server.process.pid}"):
        os.unlink(path)
    for entry in bad:
        print("  ", entry)
    shutil.rmtree(home)
    monotonic = await another_boot(server, site, port, writer, bad)
    await site.close()
    lost, doubled, disordered = verdict(site, writer)
    return Result(
        f"T1: wall clock {', '.join(list(jumps)[:-1])} while it serves, and back; starts after one that was ahead; "
        "another's write after an own one",
        "no negative age, no mass expiry, nothing immortal, writes delivered, the newest read, no crash",
        f"{len(bad)} wrong{': ' + '; '.join(bad[:4]) if bad else ''}; {len(writer.acknowledged)} writes: {lost} lost, {doubled} doubled, "
        f"{disordered} out of order, delivered {max(deliveries):.1f} s after the origin's return at most; {monotonic}",
        not bad and lost == doubled == disordered == 0,
    )


async def behind(server, site, port, writer, bad, turn):
    """Delivers writes that were accepted while the clock was ahead, after a restart with the right clock."""
    for name, offset in {"an hour": 3600, "ten years": 10 * YEAR}.items():
        await site.close()
        turn(offset)
        queued = len(writer.acknowledged)
        for number in range(3):
            await writer.write("b" + name.encode().hex(), number)
        if server.stop(keep=True) != 0:
            bad.append("the end of a server whose clock was ahead")
        turn(0)
        server.start()
        await site.open(port)

        def delivered(lines=writer.acknowledged[queued:]):
            return all(site.effects[line] for line in lines)

        if await eventually(delivered, 10) is None:
            due = server.operations("pending")[0]["nextAttemptAt"]
            bad.append(f"accepted {name} ahead, started again with the right clock: waits until {due}")
            server.call("POST", "/v1/operations/flush")
            await eventually(delivered, 10)


async def overtaken(server, site, port, bad, turn):
    """Reads what another client has written since an own write, after the clock has gone back by an hour."""
    for kind in ("live", "queued"):
        target, note = f"/held/{kind}", json.dumps({"id": kind, "text": "own"}).encode()
        if kind == "queued":
            await site.close()
        await exchange(server.gateway, "PUT", target, "Content-Type: application/json\r\n", note)
        if kind == "queued":
            await site.open(port)
        if await eventually(lambda: not server.operations("pending") and not server.operations("inflight"), 20) is None:
            bad.append(f"a {kind} write before the clock went back: not delivered")
        turn(-3600)
        site.keep(target, "another's")
        for line in ("online", "offline"):
            if line == "offline":
                await site.close()
            status, _, body, _ = await exchange(server.gateway, "GET", target)
            if status != 200 or b"another's" not in (body or b""):
                bad.append(f"a {kind} write, the clock back, another's write, {line}: {status} {body}")
        await site.open(port)
        turn(0)


async def another_boot(server, site, port, writer, bad):
    """Delivers writes that were accepted under one monotonic clock, under an earlier one."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        shutil.rmtree(server.scratch)
        return "monotonic clock not tried (needs root and unshare)"
    await site.close()
    server.command = ["unshare", "--time", "--monotonic", str(YEAR), "--boottime", str(YEAR), "--fork", "--kill-child"]
    server.start()
    before = len(writer.acknowledged)
    for number in range(5):
        await writer.write("boot", number)
    server.kill()
    server.command = []
    server.start()
    await site.open(port)
    seconds = await eventually(lambda: all(site.effects[line] for line in writer.acknowledged[before:]), 20)
    if seconds is None or len(writer.acknowledged) != before + 5 or server.stop() != 0:
        bad.append("another boot's clock: not delivered")
    return f"with a monotonic clock a year earlier delivered after {seconds or 20:.1f} s"
