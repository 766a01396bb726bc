"""What gateways took alone and hand over, and rows that the database refuses. Each returns what was measured, or raises `Failed`."""

import time
import urllib.error
import urllib.request

from fleet import Fleet, until
from holding import Failed
from postgres import Cluster


def is_ready(server):
    """The status of `/readyz`."""
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{server.admin}/readyz", timeout=10).status
    except urllib.error.HTTPError as error:
        return error.code


def is_away(server):
    return server.call("GET", "/v1/status")["fleet"]["database"] == "away"


def check_idle(fleet):
    """Raises `Failed` unless every gateway counts nothing as running, and has nothing in flight."""
    for name, server in fleet.nodes.items():

        def counts(server=server):
            return server.metric("rockpool_outbox_running"), server.metric("rockpool_fleet_claimed")

        until(lambda counts=counts: counts() == (0, 0), 10, f"{name} counts nothing as running")


def handed_over(given):
    """S20: what a gateway took alone goes over in portions and is sent; then an attempt fails, and what comes later is sent too."""
    database = Cluster()
    fleet = Fleet(given.binary, database)
    for turn in range(3):
        database.kill()
        until(lambda: all(is_away(server) for server in fleet.nodes.values()), 15, "the database is away")
        for n in range(600):
            node = "ab"[n % 2]
            if fleet.write(node, f"{node}-{n % 40}", f"{node}{turn}-{n}-{'x' * 4000}") != 202:
                raise Failed("not taken while the database was away")
        database.start()
        fleet.drained(90)
        # Each gateway has an attempt that fails.
        fleet.upstream.isAway = True
        for node in "ab":
            for n in range(4):
                fleet.write(node, f"late-{node}-{n}", f"{node}{turn}-late-{n}")
        time.sleep(2)
        fleet.upstream.isAway = False
        for node in "ab":
            for n in range(20):
                fleet.write(node, f"later-{node}-{n}", f"{node}{turn}-later-{n}")
        fleet.drained(45)
        check_idle(fleet)
    return fleet.judge()


def refused(given):
    """S21: the database refuses a row of one write, online and when it is handed over: only that one fails, and says why."""
    database = Cluster()
    fleet = Fleet(given.binary, database)
    database.sql("ALTER TABLE rockpool.item ADD CONSTRAINT refused CHECK (client_key IS DISTINCT FROM 'bad') NOT VALID")
    # Texts longer than an index entry may be are no reason.
    keyed = {"Content-Type": "text/plain", "Prefer": "respond-async"}
    status, _ = fleet.ask("a", "POST", "/items/" + "p" * 2700, "long", keyed | {"Idempotency-Key": "k" * 6000})
    if status != 202:
        raise Failed(f"a long key on a long path: {status}")
    status, body = fleet.ask("a", "POST", "/items/online", "bad", keyed | {"Idempotency-Key": "bad"})
    if status != 503:
        raise Failed(f"a row that is refused: {status} {body}")
    fleet.write("a", "online", "c0-1")
    fleet.drained(20)
    database.kill()
    until(lambda: is_away(fleet.nodes["a"]), 15, "the database is away")
    for n in range(40):
        fleet.write("a", f"e-{n % 4}", f"c1-{n}")
        if n == 20:
            status, body = fleet.ask("a", "POST", "/items/held", "bad", keyed | {"Idempotency-Key": "bad"})
            if status != 202:
                raise Failed(f"not taken while the database was away: {status}")
    database.start()
    took = fleet.drained(40)
    dead = fleet.nodes["a"].call("GET", "/v1/operations?state=dead")["items"]
    if [operation["reason"] for operation in dead] != ["unshared"]:
        raise Failed(f"dead are {dead}")
    for n in range(5):
        fleet.write("a", "after", f"c2-{n}")
    fleet.drained(20)
    if "bad" in sum(fleet.upstream.effects().values(), []):
        raise Failed("what was refused was sent")
    check_idle(fleet)
    return f"{fleet.judge()}; the rest of what was held {took:.1f} s after the start"


def keyed(given):
    """S24: one write with one key, through two gateways while the database is away: one effect, at an upstream without keys."""
    database = Cluster()
    fleet = Fleet(given.binary, database, honoured="no")
    fleet.write("a", "one", "c0-1")
    fleet.drained(20)
    database.kill()
    until(lambda: all(is_away(server) for server in fleet.nodes.values()), 15, "the database is away")
    fields = {"Content-Type": "text/plain", "Prefer": "respond-async"}
    for n in range(20):
        for node in "ab":
            status, body = fleet.ask(node, "POST", f"/items/k-{n}", f"c1-{n}", fields | {"Idempotency-Key": f"key-{n}"})
            if status != 202:
                raise Failed(f"not taken while the database was away: {status} {body}")
        fleet.acknowledged.append((f"/items/k-{n}", f"c1-{n}"))
    database.start()
    took = fleet.drained(40)
    time.sleep(3)
    return f"{fleet.judge()}; what was held {took:.1f} s after the start"


def encoded(given):
    """S21e: a database that has not every character: the gateway takes no writes, says so, and is not ready."""
    database = Cluster()
    database.sql("DROP DATABASE rockpool", database="postgres")
    make = "CREATE DATABASE rockpool TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
    database.sql(make, database="postgres")
    fleet = Fleet(given.binary, database, joins=False)
    a = fleet.nodes["a"]
    until(lambda: "LATIN1" in (a.call("GET", "/v1/status")["fleet"]["detail"] or ""), 15, "the encoding is said")
    answers = fleet.write("a", "one", "c0-1"), is_ready(a)
    if answers != (503, 503):
        raise Failed(f"a write and /readyz were answered {answers}")
    return "503 and /readyz 503, with the encoding"
