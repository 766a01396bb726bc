"""S12: gateways are replaced one after the other while clients write."""

import time

from clients import Clients
from fleet import Fleet, until
from holding import Failed
from postgres import Cluster


def rolling(given):
    """S12: both gateways are stopped and started again with another binary, one after the other, and back."""
    new = given.other_binary or given.binary
    fleet = Fleet(given.binary, Cluster())
    clients = Clients(fleet, "abab")
    time.sleep(3)
    for binary in (new, given.binary):
        for name, server in fleet.nodes.items():
            if (status := server.stop(keep=True)) != 0:
                raise Failed(f"{name} ended with {status}")
            # Their lease is given back, so nothing waits for its end.
            time.sleep(2)
            server.binary = str(binary)
            joined = server.log.count("joined the fleet")
            server.start()
            until(lambda server=server, joined=joined: server.log.count("joined the fleet") > joined, 15, f"{name} joins again")
            time.sleep(3)
    clients.stop()
    took = fleet.drained(60)
    said = "another binary and back" if given.other_binary else "the same binary: give --other-binary"
    return f"{said}; {fleet.judge()}; {clients.refused} refused; {took:.1f} s"
