"""Checks that the failing disk fails: some databases must lose rows on it, others must not."""

import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import power

# Writes rows one by one on request, and reports each after its commit. Checkpoints truncate the log at times, as in a server.
ROWS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1] + "/rows", isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA synchronous = " + sys.argv[2])
db.execute("PRAGMA wal_autocheckpoint = 12")
db.execute("CREATE TABLE row (n INTEGER PRIMARY KEY, body BLOB)")
for number in map(int, sys.stdin):
    db.execute("INSERT INTO row VALUES (?, randomblob(3000))", [number])
    print(number, flush=True)
"""
COUNT = 20


class Rows:
    """One run of that script on a failing disk."""

    def __init__(self, disk, synchronous, journaled=False, **fault):
        self.scratch = Path(tempfile.mkdtemp(prefix="rpf-rows-"))
        self.home, self.golden = self.scratch / "disk/rows", self.scratch / "golden"
        for place in (self.home, self.golden / "rows"):
            place.mkdir(parents=True)
        environment = disk.environment(self.home.parent, journaled)
        disk.arm(**fault)
        # Operations counted when row N was known to be committed.
        self.committed = {}
        with subprocess.Popen(
            [sys.executable, "-S", "-c", ROWS, self.home, synchronous],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            env=environment,
        ) as process:
            try:
                for number in range(COUNT):
                    process.stdin.write(f"{number}\n")
                    if not process.stdout.readline():
                        break
                    self.committed[number] = disk.count
                process.stdin.close()
            except BrokenPipeError:
                pass
        self.count = disk.count

    def missing(self, home, cut):
        """The number of rows committed before `cut` that are missing; all of them if the file is no sound database."""
        known = {number for number, count in self.committed.items() if count <= cut}
        if not known:
            return 0
        try:
            with sqlite3.connect(home / "rows") as db:
                sound = db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
                found = {number for (number,) in db.execute("SELECT n FROM row")} if sound else set()
            db.close()
        except sqlite3.DatabaseError:
            found = set()
        return len(known - found)

    def discard(self):
        shutil.rmtree(self.scratch, ignore_errors=True)


def after_cuts(rows, records, cuts, mode):
    """The number of rows missing after a power cut at each of `cuts`."""
    lost = 0
    for cut in cuts:
        home = Path(tempfile.mkdtemp(prefix="rpf-rows-"))
        power.Disk(rows.golden, records, cut).leave(home, mode, random.Random(cut))
        lost += rows.missing(home / "rows", cut)
        shutil.rmtree(home)
    return lost


def check_power(disk):
    """Checks that power cuts lose unsynced rows only; returns the faults."""
    wrong = []
    for synchronous in ("FULL", "OFF"):
        rows = Rows(disk, synchronous, journaled=True)
        records = disk.records()
        cuts = range(0, rows.count + 1, 5)
        lost = {mode: after_cuts(rows, records, cuts, mode) for mode in power.MODES}
        rows.discard()
        if len(rows.committed) < COUNT or (any(lost.values()) if synchronous == "FULL" else not all(lost.values())):
            wrong.append(f"synchronous={synchronous} on the failing disk: rows lost {lost}, committed {len(rows.committed)}")
    return wrong


def check_faults(disk):
    """Checks the injected faults: each selected call fails, a kill kills, an error is reported, and a sound database loses nothing."""
    wrong, rows = [], Rows(disk, "FULL")
    whole = rows.committed[COUNT - 1]
    rows.discard()
    for fault in ("kill", "half", "EIO", "ENOSPC", "short"):
        for sticky in (False,) if fault in ("kill", "half") else (False, True):
            for at in range(1, whole + 1, 11):
                rows = Rows(disk, "FULL", fault=fault, at=at, sticky=sticky)
                if not disk.block.faults and fault != "short" or fault in ("kill", "half") and len(rows.committed) == COUNT:
                    wrong.append(f"{fault} at {at} of {whole} was not met")
                if lost := rows.missing(rows.home, whole * 10):
                    wrong.append(f"{fault} at {at}: {lost} rows lost of {len(rows.committed)}")
                rows.discard()
    return wrong
