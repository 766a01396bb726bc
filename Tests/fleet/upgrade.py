"""S12: gateways are replaced one after the other while clients write."""

import time

from clients import Clients
from fleet import Fleet, until
from holding import Failed
from postgres import Cluster


def rolling(given):
    """S12: gateways of another binary are replaced by this one, one after the other, while clients write."""
    fleet = Fleet(given.other_binary or given.binary, Cluster())
    clients = Clients(fleet, "abab")
    time.sleep(3)
    for name, server in fleet.nodes.items():
        if (status := server.stop(keep=True)) != 0:
            raise Failed(f"{name} ended with {status}")
        # A node that ends gives its lease back, so its clients wait for nothing.
        time.sleep(2)
        server.binary = str(given.binary)
        joined = server.log.count("joined the fleet")
        server.start()
        until(lambda server=server, joined=joined: server.log.count("joined the fleet") > joined, 15, f"{name} joins again")
        time.sleep(4)
    clients.stop()
    took = fleet.drained(60)
    kinds = "another binary" if given.other_binary else "the same binary (--other-binary names another)"
    return f"from {kinds}; {fleet.judge()}; {clients.refused} refused; {took:.1f} s"
