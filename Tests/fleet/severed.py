"""Connections that end within a transaction, and older copies of the database. Each returns what was measured, or raises `Failed`."""

import json
import shutil
import subprocess
import threading
import time

from clients import Clients
from fleet import Fleet, until
from holding import Failed
from postgres import Cluster

# Of a gateway's connections, the one with which it waits for news, not the one on which it writes.
LISTENING = "application_name LIKE 'rockpool/%' AND state = 'idle' AND query NOT LIKE '%COMMIT%'"


def severed(given):
    """S22: the connection that waits for news ends while the other one writes large bodies: no transaction is there in part."""
    database = Cluster()
    fleet = Fleet(given.binary, database, nodes="ab")
    clients = Clients(fleet, "abab")
    stops, sent = threading.Event(), []

    def large(node):
        n = 0
        while not stops.is_set():
            n += 1
            value = f"{node}big-{n}-" + "y" * 3_000_000
            if fleet.write(node, f"big-{node}", value) == 202:
                sent.append(value)
            time.sleep(0.05)

    threads = [threading.Thread(target=large, args=(node,)) for node in "ab"]
    for thread in threads:
        thread.start()
    ended = 0
    for _ in range(40):
        ended += len(database.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {LISTENING}"))
        time.sleep(0.4)
    stops.set()
    for thread in threads:
        thread.join()
    clients.stop()
    fleet.drained(120)
    # Bodies are whole: three pieces of at most 1 MiB each, and a row for each.
    lacking = "SELECT count(*) FROM rockpool.item AS o WHERE tbl = 'blob' AND data IS NOT NULL AND NOT EXISTS ("
    broken = database.sql(f"{lacking}SELECT FROM rockpool.blob AS b WHERE b.sha = substr(o.key, 10) AND b.i = 0)")
    broken += database.sql("SELECT count(*) FROM (SELECT sha FROM rockpool.blob GROUP BY sha HAVING count(*) <> 3) AS t")
    if broken != ["0", "0"]:
        raise Failed(f"{broken} bodies are not whole")
    late = fleet.add("c")
    until(lambda: late.call("GET", "/v1/status")["fleet"]["database"] == "there", 30, "a new gateway reads everything")
    unreadable = [line for server in fleet.nodes.values() for line in server.log.splitlines() if "SQLite error" in line]
    if unreadable:
        raise Failed(f"a feed cannot be read: {unreadable[0][:300]}")
    return f"{fleet.judge()}; {ended} connections ended, {len(sent)} large bodies"


def older(given):
    """S23: the database comes back with an older copy of its disk, on the same timeline: who has seen more overwrites nothing, and returns
    with it by `rockpool fleet rejoin`."""
    database = Cluster()
    fleet = Fleet(given.binary, database, absence="refuse")
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    fleet.write("a", "one", "c0-1")
    fleet.drained(20)
    time.sleep(4)
    b.stop(keep=True)
    a.network("offline")
    database.kill()
    copy = database.scratch / "copy"
    shutil.copytree(database.data, copy, copy_function=shutil.copy2)
    if database.user:
        subprocess.run(["chown", "-R", database.user, copy], check=True)
    database.start()
    until(lambda: a.call("GET", "/v1/status")["fleet"]["database"] == "there", 20, "a is back")
    lost = []
    for n in range(2, 7):
        if fleet.write("a", "one", f"c0-{n}") != 202:
            raise Failed("no acknowledgement")
        lost.append(fleet.acknowledged.pop())
    database.kill()
    shutil.rmtree(database.data)
    copy.rename(database.data)
    database.start()
    b.start()
    until(lambda: b.log.count("joined the fleet") > 1, 20, "b joins again")
    for n in range(30):
        fleet.write("b", "two", f"c9-{n}")
    until(lambda: "older copy" in (a.call("GET", "/v1/status")["fleet"]["detail"] or ""), 20, "a says that it is an older copy")
    a.network("auto")
    if fleet.write("a", "one", "c0-9") == 202:
        raise Failed("a write was acknowledged by a gateway that has seen more than the database has")
    fleet.drained(30)
    time.sleep(3)
    effects = fleet.upstream.effects()
    if any(value in effects.get("/items/one", []) for _, value in lost):
        raise Failed(f"what is lost was sent: {effects}")
    said = a.call("GET", "/v1/status")["fleet"]["detail"][:80]
    a.stop(keep=True)
    words = [a.binary, "fleet", "rejoin", "--config", f"{a.scratch}/rockpool.yaml", "--format", "json"]
    offer = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["offer"]
    if offer["seen"] < len(lost) or offer["held"]:
        raise Failed(f"a offers {offer}")
    a.start()
    until(lambda: a.call("GET", "/v1/status")["fleet"]["database"] == "there", 20, "a joins again")
    fleet.acknowledged += lost
    took = fleet.drained(60)
    return f"{fleet.judge()}; b goes on, a says: {said}; what it had is delivered {took:.1f} s after it came back"
