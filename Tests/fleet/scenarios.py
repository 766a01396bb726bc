"""Faults of gateways and of the lines between them. Each returns what was measured, or raises `Failed`."""

import os
import signal
import time

from clients import Clients
from fleet import Fleet, discard, until
from holding import Failed
from postgres import Cluster

LEASE = 15


def plain(given, nodes="ab"):
    """S0: what one gateway takes, the others see and send; each effect once."""
    fleet = Fleet(given.binary, Cluster(), nodes=nodes)
    clients = Clients(fleet, nodes * 2)
    time.sleep(5)
    clients.stop()
    took = fleet.drained(30)
    return f"{fleet.judge()}; drained in {took:.1f} s; {clients.refused} refused"


def killed(given, nodes="ab", **more):
    """S1: SIGKILL one gateway while it sends, and never start it again."""
    fleet = Fleet(given.binary, Cluster(), nodes=nodes, **more)
    fleet.upstream.delay = 0.3
    clients = Clients(fleet, nodes * 2)
    time.sleep(4)
    fleet.nodes["a"].kill()
    time.sleep(4)
    clients.stop()
    fleet.upstream.delay = 0
    took = fleet.drained(LEASE + 45)
    return f"{fleet.judge()}; {took:.1f} s after the death"


def killed_at(given):
    """S1k: one gateway kills itself between two steps of accepting, sending and recording a write."""
    said = []
    for point in ("K4", "K5", "K6", "K10", "K11", "K12"):
        fleet = Fleet(given.binary, Cluster(), environment={"a": {"ROCKPOOL_KILL_AT": f"{point}:10"}})
        clients = Clients(fleet, "aabb")
        until(lambda fleet=fleet: not fleet.nodes["a"].alive, 30, f"the end at {point}")
        time.sleep(1)
        clients.stop()
        took = fleet.drained(LEASE + 45)
        fleet.judge()
        said.append(f"{point} {took:.0f} s")
        discard()
    return f"0 lost, 0 doubled, in order; drained after {', '.join(said)}"


def stopped(given, nodes="ab", **more):
    """S2: SIGSTOP one gateway in a transfer, for longer than its lease, then SIGCONT."""
    fleet = Fleet(given.binary, Cluster(), nodes=nodes, **more)
    fleet.upstream.delay = 0.5
    clients = Clients(fleet, nodes * 2)
    time.sleep(3)
    os.kill(fleet.nodes["a"].pid, signal.SIGSTOP)
    time.sleep(LEASE + 10)
    fleet.upstream.delay = 0
    before = len(fleet.upstream.requests)
    os.kill(fleet.nodes["a"].pid, signal.SIGCONT)
    time.sleep(2)
    clients.stop()
    took = fleet.drained(60)
    return f"{fleet.judge()}; {len(fleet.upstream.requests) - before} requests after SIGCONT; {took:.1f} s"


def partitioned(given, **more):
    """S3: one gateway loses the database, not the upstream; it stops sending before the other takes over."""
    database = Cluster()
    fleet = Fleet(given.binary, database, **more)
    fleet.upstream.delay = 30
    fleet.write("a", "one", "c0-1")
    until(lambda: any(r[2] == "c0-1" for r in fleet.upstream.requests), 10, "the first attempt")
    sender = fleet.sender(database)
    cut = time.monotonic()
    for link in fleet.database[sender]:
        link.cut()
    until(lambda: fleet.upstream.broken, 20, "the first attempt is given up")
    gave_up = fleet.upstream.broken[0] - cut
    fleet.upstream.delay = 0
    until(lambda: len(fleet.upstream.requests) > 1, 60, "the other gateway takes over")
    second = fleet.upstream.requests[1][0] - cut
    if second < gave_up:
        raise Failed(f"two attempts at once: given up after {gave_up:.1f} s, taken over after {second:.1f} s")
    time.sleep(3)
    for link in fleet.database[sender]:
        link.mend()
    took = fleet.drained(60)
    return f"{fleet.judge()}; given up {gave_up:.1f} s after the cut, taken over after {second:.1f} s; {took:.1f} s"


def secluded(given):
    """S4: one gateway loses the upstream, not the database: the other sends what it takes."""
    fleet = Fleet(given.binary, Cluster(), lined=True, patience="connect: 1s, first_byte: 2s, idle: 2s")
    clients = Clients(fleet, "aabb")
    time.sleep(3)
    fleet.lines["a"].cut()
    time.sleep(10)
    before, begun = len(fleet.upstream.requests), time.monotonic()
    for n in range(20):
        fleet.write("a", f"alone-{n}", f"c9-{n}")
    until(lambda: not [w for w in fleet.missing() if w[1].startswith("c9-")], 30, "what the one that is cut off takes is sent")
    took = time.monotonic() - begun
    clients.stop()
    backlog = fleet.drained(60)
    if len(fleet.upstream.requests) == before:
        raise Failed("nothing was sent")
    fleet.lines["a"].mend()
    return f"{fleet.judge()}; 20 writes of the one that is cut off sent within {took:.1f} s; drained in {backlog:.1f} s"
