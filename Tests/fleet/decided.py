"""What two gateways could decide twice. Each returns what was measured, or raises `Failed`."""

import collections
import json

from fleet import Fleet, discard, until
from holding import Failed
from postgres import Cluster

COUNT = 20


def decided(given):
    """S17: writes that meet another client's are decided once, though each gateway could decide them."""
    said = []
    for strategy in ("client-wins", "keep-both"):
        resources = f', resources: [{{ collection: /things, item: "/things/{{id}}", conflict: {strategy} }}]'
        fleet = Fleet(given.binary, Cluster(), upstream=resources)
        for n in range(COUNT):
            fleet.upstream.documents[f"/things/{n}"] = thing(n, "first")
            for name in fleet.nodes:
                fleet.ask(name, "GET", f"/things/{n}")
        for server in fleet.nodes.values():
            server.network("offline")
        for n in range(COUNT):
            fields = {"Content-Type": "application/json", "Prefer": "respond-async"}
            status, _ = fleet.ask("ab"[n % 2], "PUT", f"/things/{n}", json.dumps(thing(n, "mine")), fields)
            if status != 202:
                raise Failed(f"the write of {n} was answered by {status}")
            fleet.upstream.documents[f"/things/{n}"] = thing(n, "theirs")
        fleet.upstream.reading = 0.3
        for server in fleet.nodes.values():
            server.network("auto")
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


def thing(n, title):
    return {"id": str(n), "title": title, "note": "x"}
