"""The five faults of the published comparison of job queues on PostgreSQL, and the share of the writes before that is taken after each."""

import contextlib
import socket
import struct
import time

from clients import Clients
from fleet import Fleet
from holding import Failed
from postgres import Cluster

LEAST = 0.5
# The first message of a client: version 3.0 of the protocol, and who it is.
GREETING = b"\0\x03\0\0user\0postgres\0database\0rockpool\0\0"


def restarted(given, nodes="ab"):
    """S5: the database is killed once and three times, its connections are ended and used up, one gateway is killed: writes recover."""
    database = Cluster(settings="max_connections = 60")
    fleet = Fleet(given.binary, database, nodes=nodes)
    clients = Clients(fleet, nodes * 2)
    time.sleep(2)
    said, worst = [], 1.0
    for name, fault in FAULTS.items():
        before = clients.rate(4)
        fault(fleet, database)
        # The lease of a gateway that was killed ends, and what it had in flight is taken over.
        time.sleep(4)
        share = clients.rate(4) / before
        worst = min(worst, share)
        said.append(f"{name} {share:.0%} of {before:.0f}/s")
    clients.stop()
    fleet.drained(60)
    if worst < LEAST:
        raise Failed(f"writes did not recover: {', '.join(said)}")
    return f"{fleet.judge()}; {', '.join(said)}; {clients.refused} refused"


def kill_once(fleet, database):
    database.kill()
    time.sleep(2)
    database.start()


def kill_often(fleet, database):
    for _ in range(3):
        database.kill()
        time.sleep(0.5)
        database.start()
        time.sleep(1)


def end_connections(fleet, database):
    for _ in range(8):
        database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'rockpool/%'")
        time.sleep(0.5)


def use_up(fleet, database):
    """Connections of others take every place while those of the gateways are ended once."""
    held = []
    database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'rockpool/%'")
    with contextlib.ExitStack() as stack:
        end = time.monotonic() + 4
        while time.monotonic() < end:
            try:
                held.append(stack.enter_context(socket.create_connection(("127.0.0.1", database.port), 2)))
                held[-1].sendall(struct.pack(">I", len(GREETING) + 4) + GREETING)
            except OSError:
                pass
            time.sleep(0.005 if len(held) < 120 else 0.05)


def kill_gateway(fleet, database):
    last = list(fleet.nodes)[-1]
    fleet.nodes[last].kill()
    time.sleep(16)
    fleet.nodes[last].start()


FAULTS = {
    "restart": kill_once,
    "repeated kills": kill_often,
    "terminated": end_connections,
    "no connections": use_up,
    "gateway": kill_gateway,
}
