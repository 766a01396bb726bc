"""S13: a transaction of somebody else keeps its snapshot, so that PostgreSQL removes no old version of a row."""

import re
import subprocess
import time

from clients import Clients
from fleet import Fleet, discard
from holding import Failed
from postgres import Cluster, programs

LIMIT = 3


class Claims:
    """The duration of each claim, from the log of the server."""

    SETTINGS = "log_min_duration_statement = 0"

    def __init__(self, database):
        self.log = database.scratch / "log"
        self.offset = 0

    def take(self):
        """Returns the milliseconds of the claims since the last call, in order of their size."""
        with open(self.log, errors="replace") as file:
            file.seek(self.offset)
            text = file.read()
            self.offset = file.tell()
        # A claim is a statement of several lines; it inserts into the lanes.
        found = re.finditer(r"duration: ([\d.]+) ms  execute \S+: WITH given AS", text)
        return sorted(float(match[1]) for match in found)


def share(values, part):
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


def held(given):
    """S13: a REPEATABLE READ transaction is held for minutes while thousands of writes go through: the claims stay fast."""
    minutes = given.minutes or 2
    calm = measured(given, minutes, isHeld=False)
    discard()
    old = measured(given, minutes, isHeld=True)
    ratio = old["p99"] / max(calm["p99"], 0.001)
    said = (
        f"claim p99 {old['p99']:.2f} ms with the snapshot held for {minutes:g} min, {calm['p99']:.2f} ms without ({ratio:.1f} ×); "
        f"last quarter {old['late']:.2f} and {calm['late']:.2f} ms; {old['claims']} and {calm['claims']} claims; "
        f"{old['dead']} and {calm['dead']} dead rows; {old['verdict']}"
    )
    if ratio > LIMIT:
        raise Failed(said)
    return said


def measured(given, minutes, isHeld):
    database = Cluster(settings=Claims.SETTINGS)
    claims = Claims(database)
    fleet = Fleet(given.binary, database)
    fleet.write("a", "first", "c0-1")
    fleet.drained(20)
    reader = hold(database) if isHeld else None
    clients = Clients(fleet, "aabb", pause=0)
    claims.take()
    time.sleep(minutes * 45)
    early = claims.take()
    time.sleep(minutes * 15)
    late = claims.take()
    clients.stop()
    dead = database.sql("SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = 'rockpool'")[0]
    fleet.drained(120)
    verdict = fleet.judge()
    if reader:
        reader.kill()
        reader.wait()
    both = sorted(early + late)
    return {"p99": share(both, 0.99), "late": share(late, 0.99), "claims": len(both), "dead": dead, "verdict": verdict}


def hold(database):
    """Begins a transaction that keeps its snapshot until the process is killed."""
    reader = subprocess.Popen(
        [f"{programs()}/psql", "-q", "-d", database.url], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd="/"
    )
    reader.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rockpool.item;\n")
    reader.stdin.flush()
    time.sleep(1)
    return reader
