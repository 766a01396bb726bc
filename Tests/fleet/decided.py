"""What two gateways could decide or tell twice. Each returns what was measured, or raises `Failed`."""

import collections
import json
import time
from pathlib import Path

from fleet import Fleet, discard, until
from holding import Failed
from postgres import Cluster

COUNT = 20


def decided(given):
    """S17: writes that meet another client's are decided once, though each gateway could decide them."""
    said = []
    for strategy in ("client-wins", "keep-both"):
        fleet = Fleet(given.binary, Cluster(), upstream=resources(strategy))
        fleet.upstream.reading = 0.3
        meet(fleet, range(COUNT))
        a = fleet.nodes["a"]
        took = until(lambda a=a: all(o["state"] == "delivered" for o in a.operations()), 40, f"{strategy}: all are delivered")
        conflicts = collections.Counter(c["operation"] for c in a.call("GET", "/v1/conflicts?state=all&limit=500")["items"])
        if conflicts.total() != COUNT or len(conflicts) != COUNT:
            raise Failed(f"{strategy}: {conflicts.total()} conflicts were recorded for {len(conflicts)} operations")
        if len(fleet.upstream.requests) != COUNT:
            raise Failed(f"{strategy}: {len(fleet.upstream.requests)} writes were sent for {COUNT}")
        said.append(f"{strategy} {took:.1f} s")
        discard()
    return f"{COUNT} conflicts, each decided and sent once: {', '.join(said)}"


def told(given):
    """S18: what happens to a write is told by one gateway; when it dies, by the other."""
    database = Cluster()
    fleet = Fleet(given.binary, database, upstream=resources("ask"))
    for server in fleet.nodes.values():
        server.stop(keep=True)
        with open(f"{server.scratch}/rockpool.yaml", "a") as file:
            file.write(f'notify: [{{ on: [conflicted], every: 1s, command: [/usr/bin/tee, -a, "{server.scratch}/told"] }}]\n')
        server.start()
    until(lambda: all(server.log.count("joined the fleet") == 2 for server in fleet.nodes.values()), 15, "both are back")
    meet(fleet, [0])
    took = until(lambda: any(map(notices, fleet.nodes.values())), 20, "a notice")
    time.sleep(4)
    if (count := sum(len(notices(server)) for server in fleet.nodes.values())) != 1:
        raise Failed(f"one conflict was told {count} times")
    first = database.sql("SELECT name FROM rockpool.node ORDER BY id LIMIT 1")[0]
    other = next(name for name in fleet.nodes if name != first)
    before = {o["id"] for o in fleet.nodes[other].operations()}
    fleet.nodes[first].kill()
    meet(fleet, [1], at=other)
    again = until(lambda: set(notices(fleet.nodes[other])) - before, 40, "the other tells")
    return f"told once, after {took:.1f} s; by the other {again:.1f} s after the death"


def notices(server):
    """The operations that the gateway has told of."""
    file, found = Path(server.scratch, "told"), []
    text = file.read_text() if file.exists() else ""
    while text.strip():
        notice, end = json.JSONDecoder().raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        found += notice["data"]["operations"]
    return found


def resources(strategy):
    return f', resources: [{{ collection: /things, item: "/things/{{id}}", conflict: {strategy} }}]'


def meet(fleet, numbers, at="ab"):
    """Writes, at these gateways in turn, what another client has changed meanwhile."""
    for n in numbers:
        fleet.upstream.documents[f"/things/{n}"] = thing(n, "first")
        for name in at:
            fleet.ask(name, "GET", f"/things/{n}")
    for name in at:
        fleet.nodes[name].network("offline")
    for n in numbers:
        fields = {"Content-Type": "application/json", "Prefer": "respond-async"}
        status, _ = fleet.ask(at[n % len(at)], "PUT", f"/things/{n}", json.dumps(thing(n, "mine")), fields)
        if status != 202:
            raise Failed(f"the write of {n} was answered by {status}")
        fleet.upstream.documents[f"/things/{n}"] = thing(n, "theirs")
    for name in at:
        fleet.nodes[name].network("auto")


def thing(n, title):
    return {"id": str(n), "title": title, "note": "x"}
