"""What a fleet promises to clients of any node: keys that an upstream does not honour, reads and writes beside another node's."""

import os
import signal
import threading
import time

from clients import Clients
from fleet import Fleet, discard, until
from holding import Failed, check, doubles
from postgres import Cluster

# A read may be older than this only if the database was asked (docs/fleet.md#reads).
AGE = 2


def without_keys(given):
    """S1u: one gateway kills itself around a sending to an upstream that honours no keys: what may have happened is not sent again."""
    said = []
    for point in ("K6", "K10", "K11", "K12"):
        fleet = Fleet(given.binary, Cluster(), honoured="no", environment={"a": {"ROCKPOOL_KILL_AT": f"{point}:10"}})
        fleet.upstream.honoursKeys = False
        clients = Clients(fleet, "aabb")
        until(lambda fleet=fleet: not fleet.nodes["a"].alive, 30, f"the end at {point}")
        time.sleep(1)
        clients.stop()
        other = fleet.nodes["b"]

        def settled(fleet=fleet, other=other):
            blocked = {o["lane"] for o in other.operations("uncertain")}
            waiting = [o for o in other.operations("pending") + other.operations("inflight") if o["lane"] not in blocked]
            return not waiting

        took = until(settled, 60, f"{point}: what is certain is sent")
        check(fleet, isComplete=False)
        uncertain = other.operations("uncertain")
        stuck = {o["lane"] for o in uncertain}
        kept = {o["id"] for o in other.operations("all")}
        unsent = [w for w in fleet.missing() if not any(w[0].rsplit("/", 1)[-1] in lane for lane in stuck)]
        if unsent:
            raise Failed(f"{point}: {len(unsent)} acknowledged writes are lost: {unsent[:3]}; {len(kept)} operations, stuck {stuck}")
        if doubled := doubles(fleet.upstream.effects()):
            raise Failed(f"{point}: sent twice: {doubled[:3]}")
        said.append(f"{point} {len(uncertain)} uncertain, {took:.0f} s")
        discard()
    return f"0 lost, 0 doubled without keys; {'; '.join(said)}"


def watermark(given):
    """SR: a gateway that was asleep answers at once: its reads show, and its writes follow, what another has acknowledged meanwhile."""
    fleet = Fleet(given.binary, Cluster(), absence="refuse", patience="connect: 1s, first_byte: 20s, idle: 20s")
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    for server in (a, b):
        server.network("offline")
    stale = []
    for n in range(6):
        seen = _while_asleep(b, lambda n=n: _put(fleet, n), lambda n=n: fleet.ask("b", "GET", f"/files/{n}"))
        if seen != (200, f"round {n}"):
            stale.append((n, *seen))
    if stale:
        raise Failed(f"{len(stale)} of 6 reads are older than an acknowledged write: {stale[:2]}")
    for server in (a, b):
        server.network("auto")
    overtaken = 0
    for n in range(4):
        until(lambda: not a.operations("pending") + a.operations("inflight"), 30, "nothing waits")
        fleet.upstream.delay = 3
        _while_asleep(
            b, lambda n=n: fleet.write("a", f"w{n}", "c0-1"), lambda n=n: fleet.write("b", f"w{n}", "c1-1", timeout=30, wait=True)
        )
        fleet.upstream.delay = 0
        overtaken += fleet.upstream.effects().get(f"/items/w{n}", [""])[0] != "c0-1"
    fleet.drained(30)
    if overtaken or fleet.upstream.overlaps:
        raise Failed(f"{overtaken} writes overtook what another gateway had accepted, {fleet.upstream.overlaps} overlapped it")
    return f"6 reads show and 4 live writes follow what the other gateway had accepted; {fleet.judge()}"


def _put(fleet, n):
    status, _ = fleet.ask("a", "PUT", f"/files/{n}", f"round {n}", {"Content-Type": "text/plain", "Prefer": "respond-async"})
    if status not in (200, 201, 202, 204):
        raise Failed(f"the write of round {n}: {status}")


def _while_asleep(sleeper, act, question):
    """Stops a gateway, acts, puts a question to it and lets it go on; returns the answer."""
    # Not in a transaction of its own, for whose end the others would wait in vain.
    time.sleep(1)
    os.kill(sleeper.pid, signal.SIGSTOP)
    begun, answers = time.monotonic(), []
    act()
    asking = threading.Thread(target=lambda: answers.append(question()), daemon=True)
    asking.start()
    time.sleep(max(0.3, begun + AGE + 0.5 - time.monotonic()))
    os.kill(sleeper.pid, signal.SIGCONT)
    asking.join(40)
    return (answers or [(None, "")])[0]
