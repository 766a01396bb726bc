"""S15: the outbox of a fleet is moved into the data.sqlite of its last node and back, by commands that are killed again and again."""

import json
import os
import signal
import subprocess
from pathlib import Path

from fleet import Fleet, until
from holding import Failed
from postgres import Cluster

# Before the commit of the shared database, between it and the node's own, and after the shared one was emptied.
POINTS = ("F1:1", "F2:1", "F1:2", "F2:2", "F1:3", "F2:3", "F1:4", "F2:4", "F3:1")


def moved(given):
    """S15: outbox migrate there and back, killed at every point between, loses and doubles nothing."""
    fleet = Fleet(given.binary, Cluster())
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    for server in (a, b):
        server.network("offline")
    write(fleet, "ab", 30)
    listed(fleet, a)
    if migrate(a, "sqlite").returncode != 75:
        raise Failed("the outbox was moved while the gateway ran")
    b.stop(keep=True)
    a.stop(keep=True)
    there, killed = repeatedly(a, "sqlite")
    if there["open"] != 30:
        raise Failed(f"30 writes waited, and {there} came")
    configure(a, "store: postgresql", "store: sqlite")
    a.start()
    write(fleet, "a", 10)
    a.stop(keep=True)
    back, more = repeatedly(a, "postgresql")
    if back["open"] != 40:
        raise Failed(f"40 writes waited, and {back} came")
    configure(a, "store: sqlite", "store: postgresql")
    a.start()
    # What it had of the fleet is of before: it stays out until it begins anew.
    b.start()
    until(lambda: "outbox was moved" in b.log, 15, "a replica of before stays out")
    b.stop(keep=True)
    for file in Path(b.scratch, "state").glob("data.sqlite*"):
        file.unlink()
    b.start()
    until(lambda: b.log.count("joined the fleet") == 2, 15, "it joins anew")
    for server in (a, b):
        server.network("auto")
    took = fleet.drained(60)
    return f"{fleet.judge()}; killed {killed} times there and {more} times back; {took:.1f} s"


def write(fleet, nodes, count):
    begun = len(fleet.acknowledged)
    for n in range(begun, begun + count):
        if fleet.write(nodes[n % len(nodes)], f"{n % 3}", f"c0-{n}") != 202:
            raise Failed("a write was not accepted")


def listed(fleet, server):
    """`fleet outbox` names the node that took each write."""
    words = [server.binary, "fleet", "outbox", "--config", f"{server.scratch}/rockpool.yaml", "--format", "json"]
    items = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["items"]
    if sorted(item["takenBy"] for item in items) != ["a"] * 15 + ["b"] * 15:
        raise Failed(f"the nodes of the writes: {[item['takenBy'] for item in items]}")


def configure(server, old, new):
    file = Path(server.scratch, "rockpool.yaml")
    file.write_text(file.read_text().replace(old, new))


def migrate(server, place, point=""):
    environment = {**os.environ, "SWIFT_BACKTRACE": "enable=no", "ROCKPOOL_KILL_AT": point}
    words = [server.binary, "outbox", "migrate", "--to", place, "--config", f"{server.scratch}/rockpool.yaml", "--format", "json"]
    return subprocess.run(words, env=environment, capture_output=True, text=True)


def repeatedly(server, place):
    """Returns what the last run counted, and how many were killed before."""
    killed = 0
    for point in POINTS:
        run = migrate(server, place, point)
        if run.returncode not in (0, -signal.SIGKILL):
            raise Failed(f"{place} {point}: {run.stdout}{run.stderr}")
        killed += run.returncode != 0
    if killed < 4:
        raise Failed(f"only {killed} runs were killed")
    run = migrate(server, place)
    if run.returncode:
        raise Failed(f"{place}: {run.stdout}{run.stderr}")
    return json.loads(run.stdout)["counts"], killed
