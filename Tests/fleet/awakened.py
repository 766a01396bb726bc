"""A gateway that was asleep for longer than its lease. Each returns what was measured, or raises `Failed`."""

import json
import os
import signal
import time

from clients import Clients
from fleet import Fleet, until
from holding import Failed
from postgres import Cluster
from scenarios import LEASE


def answered_late(given):
    """S2a: a stopped gateway wakes to answers for what another has in flight by now: it records none of them."""
    database = Cluster()
    fleet = Fleet(given.binary, database, patience="connect: 1s, first_byte: 90s, idle: 90s")
    # A gateway sends one write alone until it knows the upstream.
    clients = Clients(fleet, "ab")
    time.sleep(3)
    clients.stop()
    fleet.drained(20)
    before, fleet.upstream.delay = len(fleet.upstream.requests), 90
    for n in (1, 2):
        for entity in range(8):
            fleet.write("ab"[entity % 2], f"late-{entity}", f"c{entity}-{n}")
    until(lambda: len(fleet.upstream.requests) >= before + 8, 10, "the first attempts")
    sleeper = fleet.nodes[fleet.sender(database)].pid
    os.kill(sleeper, signal.SIGSTOP)
    # The answers wait in the sockets of the one that is stopped.
    fleet.upstream.delay = 0
    time.sleep(1)
    fleet.upstream.delay = 90
    until(fleet.upstream.repeated, LEASE + 15, "the other gateway takes over")
    time.sleep(1)
    again = len(fleet.upstream.repeated())
    os.kill(sleeper, signal.SIGCONT)
    time.sleep(6)
    fleet.upstream.delay = 0
    took = fleet.drained(60)
    return f"{fleet.judge()}; {again} were in flight again; {took:.1f} s"


def read_late(given):
    """S2b: a gateway falls asleep in the read before a write, and another sends the write: it does not send it too when it wakes."""
    database = Cluster()
    fleet = Fleet(
        given.binary,
        database,
        honoured="no",
        patience="connect: 1s, first_byte: 90s, idle: 90s",
        upstream=', resources: [{ collection: /things, item: "/things/{id}", conflict: ask }]',
    )
    path = "/things/1"
    fleet.upstream.documents[path] = {"id": "1", "title": "first"}
    for name in fleet.nodes:
        fleet.ask(name, "GET", path)
    time.sleep(1)
    reads, fleet.upstream.reading = fleet.upstream.reads, 90
    document = json.dumps({"id": "1", "title": "second"})
    status, _ = fleet.ask("a", "PUT", path, document, {"Content-Type": "application/json", "Prefer": "respond-async"})
    if status != 202:
        raise Failed(f"the write was answered by {status}")
    until(lambda: fleet.upstream.reads > reads, 10, "the read before the write")
    sleeper = fleet.nodes[fleet.sender(database)].pid
    os.kill(sleeper, signal.SIGSTOP)
    fleet.upstream.reading = 0
    took = until(lambda: fleet.upstream.requests, LEASE + 30, "the other gateway sends the write")
    time.sleep(1)
    os.kill(sleeper, signal.SIGCONT)
    time.sleep(5)
    if len(fleet.upstream.requests) != 1:
        raise Failed(f"the write was sent {len(fleet.upstream.requests)} times")
    return f"sent once, {took:.1f} s after the one that had it fell asleep"
