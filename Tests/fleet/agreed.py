"""What nodes with other settings say. Each returns what was measured, or raises `Failed`."""

import os
import signal
from pathlib import Path

from fleet import Fleet, until
from holding import Failed
from postgres import Cluster

KEY = "upstreams.origin.idempotency.max_processing"


def disagreed(given):
    """S26: settings that differ are named and counted at each node, until they agree again."""
    fleet = Fleet(given.binary, Cluster())
    if any(differing(server) for server in fleet.nodes.values()):
        raise Failed("equal settings differ")
    change(fleet.nodes["b"], "max_processing: 2s", "max_processing: 3s")
    took = until(lambda: [differing(fleet.nodes[n]) for n in "ab"] == [{"b": [KEY]}, {"a": [KEY]}], 15, "each names the other")
    counts = [server.metric("rockpool_fleet_differing_nodes") for server in fleet.nodes.values()]
    if counts != [1, 1]:
        raise Failed(f"the nodes count {counts} with other settings")
    change(fleet.nodes["b"], "max_processing: 3s", "max_processing: 2s")
    again = until(lambda: not any(differing(server) for server in fleet.nodes.values()), 15, "the settings agree again")
    if any(server.metric("rockpool_fleet_differing_nodes") for server in fleet.nodes.values()):
        raise Failed("nodes with equal settings are counted")
    return f"named after {took:.1f} s, forgotten after {again:.1f} s"


def change(server, old, new):
    """Changes the configuration of a gateway while it runs."""
    file = Path(server.scratch, "rockpool.yaml")
    file.write_text(file.read_text().replace(old, new))
    os.kill(server.pid, signal.SIGHUP)


def differing(server):
    """The keys that differ, by the name of the other node."""
    return {one["node"]: one["keys"] for one in server.call("GET", "/v1/status")["fleet"]["differences"]}
