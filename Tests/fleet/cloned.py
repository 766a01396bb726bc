"""S19: the state_dir of a gateway was copied with its machine: one id of a node twice."""

import shutil
import time

from clients import Clients
from fleet import Fleet, until
from holding import Failed, missing
from postgres import Cluster

SAID = "takes no part in its fleet any more"


def cloned(given):
    """S19: of two gateways with one id, the one that was there before ends its part and says so, and the other goes on."""
    database = Cluster()
    fleet = Fleet(given.binary, database, absence="refuse")
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    b.stop(keep=True)
    a.stop(keep=True)
    shutil.rmtree(f"{b.scratch}/state")
    shutil.copytree(f"{a.scratch}/state", f"{b.scratch}/state")
    a.start()
    until(lambda: a.log.count("joined the fleet") == 2, 15, "the first is back")
    b.start()
    clients = Clients(fleet, "aabb")
    time.sleep(10)
    clients.stop()
    said = [server.log.count(SAID) for server in (a, b)]
    epochs = database.sql("SELECT max(epoch) FROM rockpool.node")[0]
    if said != [1, 0] or int(epochs) > 4:
        raise Failed(f"said by the first {said[0]} times, by the second {said[1]} times; {epochs} epochs")
    if (status := fleet.write("a", "one", "c9-1")) == 202 or fleet.write("b", "one", "c9-2") != 202:
        raise Failed(f"the first goes on ({status}), or the second does not")
    took = fleet.drained(30)
    if lost := missing(fleet.acknowledged, fleet.upstream.effects()):
        raise Failed(f"{len(lost)} are lost")
    return f"said once; {len(fleet.acknowledged)} acknowledged, 0 lost; {clients.refused} refused; drained in {took:.1f} s"
