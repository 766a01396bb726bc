"""S13 and S16: a transaction of somebody else keeps its snapshot, so that PostgreSQL removes no old version of a row."""

import re
import subprocess
import time

from clients import Clients
from fleet import Fleet, discard
from holding import Failed
from postgres import Cluster, programs

LIMIT = 3


class Durations:
    """The durations of the statements of the gateways, from the log of the server."""

    SETTINGS = "log_min_duration_statement = 0"
    # How a statement begins in the log.
    CLAIM, SHIPMENT = "WITH given AS", "WITH released AS"

    def __init__(self, database):
        self.log, self.offset = database.scratch / "log", 0

    def take(self):
        """Returns the milliseconds since the last call, of claims and of shipments, each in order of size."""
        with open(self.log, errors="replace") as file:
            file.seek(self.offset)
            text = file.read()
            self.offset = file.tell()
        return tuple(
            sorted(float(match[1]) for match in re.finditer(rf"duration: ([\d.]+) ms  execute \S+: {kind}", text))
            for kind in (self.CLAIM, self.SHIPMENT)
        )


def share(values, part):
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


def held(given):
    """S13: a REPEATABLE READ transaction is held for minutes while thousands of writes go through: claims and shipments stay fast."""
    minutes = given.minutes or 2
    calm = measured(given, minutes, isHeld=False)
    discard()
    old = measured(given, minutes, isHeld=True)
    said = (
        f"claim p99 {old['claim']:.2f} ms in the last quarter of {minutes:g} min with the snapshot held, {calm['claim']:.2f} ms without; "
        f"shipment p99 {old['shipment']:.2f} and {calm['shipment']:.2f} ms; {old['rate']:.0f} and {calm['rate']:.0f} "
        f"writes/s; {old['claims']} and {calm['claims']} claims; {old['dead']} and {calm['dead']} dead rows; {old['verdict']}"
    )
    if any(old[kind] > LIMIT * calm[kind] for kind in ("claim", "shipment")):
        raise Failed(said)
    return said


def measured(given, minutes, isHeld):
    database = Cluster(settings=Durations.SETTINGS)
    durations = Durations(database)
    fleet = Fleet(given.binary, database)
    fleet.write("a", "first", "c0-1")
    fleet.drained(20)
    reader = hold(database) if isHeld else None
    clients = Clients(fleet, "aabb", pause=0)
    durations.take()
    time.sleep(minutes * 45)
    count = len(durations.take()[0])
    rate = clients.rate(minutes * 15)
    claims, shipments = durations.take()
    clients.stop()
    dead = database.sql("SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = 'rockpool'")[0]
    fleet.drained(120)
    if reader:
        reader.kill()
        reader.wait()
    return {
        "claim": share(claims, 0.99),
        "shipment": share(shipments, 0.99),
        "rate": rate,
        "claims": count + len(claims),
        "dead": dead,
        "verdict": fleet.judge(),
    }


def rejoined(given):
    """S16: a transaction of somebody else has read the outbox and stays open; a gateway that starts again keeps nobody waiting."""
    database = Cluster()
    fleet = Fleet(given.binary, database, absence="refuse")
    fleet.write("a", "one", "c0-1")
    reader = hold(database)
    server = fleet.nodes["b"]
    server.kill()
    server.start()
    begun, n, longest = time.monotonic(), 1, 0
    while time.monotonic() - begun < 12:
        for name in fleet.nodes:
            asked, n = time.monotonic(), n + 1
            status = fleet.write(name, "two", f"c1-{n}", timeout=20)
            longest = max(longest, time.monotonic() - asked)
            if status != 202 and time.monotonic() - begun > 5:
                raise Failed(f"{name} answered {status} {time.monotonic() - begun:.0f} s after the start of b, while somebody reads")
        time.sleep(0.2)
    reader.kill()
    reader.wait()
    fleet.drained(30)
    return f"{fleet.judge()}; the longest took {longest:.1f} s"


def hold(database):
    """Begins a transaction that keeps its snapshot until the process is killed."""
    reader = subprocess.Popen(
        [f"{programs()}/psql", "-q", "-d", database.url], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd="/"
    )
    reader.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rockpool.item;\n")
    reader.stdin.flush()
    time.sleep(1)
    return reader
