"""The five faults of the published comparison of job queues on PostgreSQL, and the share of the writes before that is taken after each."""

import contextlib
import socket
import statistics
import struct
import time

from clients import Clients
from fleet import Fleet, until
from holding import Failed
from postgres import Cluster

# The share that must be reached again, by the median of so many windows of so many seconds. Below it, as many more are measured: what a
# fault leaves behind stays.
LEAST, WINDOWS, SPAN, MEASUREMENTS = 0.95, 9, 3, 3
# The first message of a client: version 3.0 of the protocol, and who it is.
GREETING = b"\0\x03\0\0user\0postgres\0database\0rockpool\0\0"


def restarted(given, nodes="ab"):
    """S5: the database is killed once and three times, its connections are ended and used up, one gateway is killed: writes recover."""
    # A twin without a fault runs beside it: what other programs take from the machine, they take from both.
    trial, twin = Trial(given, nodes), Trial(given, nodes)
    time.sleep(5)
    said, failed = [], []
    # All that was measured before: five small losses must not pass as five recoveries.
    calm = compared(trial, twin)
    for name, fault in FAULTS.items():
        fault(trial.fleet, trial.database)
        trial.clients.go_home()
        after, share = [], 0
        while share < LEAST and len(after) < WINDOWS * MEASUREMENTS:
            after += compared(trial, twin)
            share = statistics.median(after) / statistics.median(calm)
        said.append(f"{name} {share:.0%}")
        failed += [name] if share < LEAST else []
        calm += after
    for each in (trial, twin):
        each.clients.stop()
        each.fleet.drained(60)
    if failed:
        raise Failed(f"writes did not recover after {', '.join(failed)}: {'; '.join(said)}")
    return f"{trial.fleet.judge()}; {'; '.join(said)}; {trial.clients.refused} refused"


class Trial:
    """A fleet with clients that write at each of its gateways."""

    def __init__(self, given, nodes):
        self.database = Cluster(settings="max_connections = 60")
        # Without relays, which are threads of this process: they would be measured too.
        self.fleet = Fleet(given.binary, self.database, nodes=nodes, relayed=False)
        self.clients = Clients(self.fleet, nodes * 2, isPatient=True)

    @property
    def count(self):
        return len(self.fleet.acknowledged)

    def settle(self):
        """Waits until nothing is left of what a fault has delayed."""
        few = 2 * len(self.clients.threads)
        until(lambda: self.count - sum(map(len, self.fleet.upstream.effects().values())) <= few, 60, "the outbox is as short as before")


def compared(trial, twin):
    """The acknowledged writes of some windows as multiples of those of the twin."""
    trial.settle()
    shares = []
    for _ in range(WINDOWS):
        before = trial.count, twin.count
        time.sleep(SPAN)
        shares.append((trial.count - before[0]) / max(1, twin.count - before[1]))
    return shares


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
