"""Faults of the databases and of the lines to them. Each returns what was measured, or raises `Failed`."""

import time

from clients import Clients
from fleet import Fleet
from holding import Failed
from postgres import Cluster


def synchronous():
    """A primary, and a standby for which every commit waits."""
    database = Cluster()
    standby = Cluster(standby_of=database)
    database.configure("synchronous_standby_names = 'standby'")
    database.reload()
    return database, standby


def check_kept(fleet, database):
    """Raises `Failed` if the database lacks an acknowledged write."""
    kept = int(database.sql("SELECT count(*) FROM rockpool.item WHERE tbl = 'op' AND part = 0 AND data IS NOT NULL")[0])
    if kept < len(fleet.acknowledged):
        raise Failed(f"{kept} operations are there, {len(fleet.acknowledged)} were acknowledged")


def promoted(given, nodes="ab"):
    """S6: the primary dies, its synchronous standby is promoted."""
    database, standby = synchronous()
    fleet = Fleet(given.binary, database, standby, absence="refuse", relayed=False, nodes=nodes)
    clients = Clients(fleet, nodes * 2)
    time.sleep(4)
    database.kill()
    standby.promote()
    time.sleep(6)
    after = len(fleet.acknowledged)
    time.sleep(3)
    clients.stop()
    if len(fleet.acknowledged) == after:
        logs = "\n".join(server.log[-800:] for server in fleet.nodes.values())
        raise Failed(f"nothing was acknowledged after the promotion\n{logs}")
    fleet.drained(60)
    check_kept(fleet, standby)
    return fleet.judge()


def unwarranted(given, settings=""):
    """S8: the standby is cut off, and the waits of our commits are cancelled: PostgreSQL says COMMIT, with a warning."""
    database, standby = synchronous()
    database.configure(settings)
    database.reload()
    fleet = Fleet(given.binary, database, absence="refuse", nodes="a")
    if fleet.write("a", "one", "c0-1") != 202:
        raise Failed("no acknowledgement while the standby was there")
    standby.kill()
    time.sleep(1)
    clients = Clients(fleet, "aa")
    before = len(fleet.acknowledged)
    for _ in range(20):
        database.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        time.sleep(0.2)
    clients.stop()
    taken = len(fleet.acknowledged) - before
    if taken:
        raise Failed(f"{taken} writes were acknowledged without the standby")
    return f"{clients.refused} refused, none acknowledged"


def divided(given):
    """S9: the standby is promoted while the old primary lives: nothing is acknowledged by the old one."""
    database, standby = synchronous()
    fleet = Fleet(given.binary, database, standby, absence="refuse", relayed=False)
    clients = Clients(fleet, "abab")
    time.sleep(3)
    standby.promote()
    # The commits of the old one wait for ever: the gateways give them up, and find the new one.
    time.sleep(15)
    before = len(fleet.acknowledged)
    time.sleep(3)
    clients.stop()
    if len(fleet.acknowledged) == before:
        raise Failed("nothing was acknowledged by the new primary")
    took = fleet.drained(60)
    check_kept(fleet, standby)
    return f"{fleet.judge()}; {took:.1f} s"


def spilled(given):
    """S10: the database is away for a while; both gateways keep what they take, and hand it over."""
    database = Cluster()
    fleet = Fleet(given.binary, database)
    clients = Clients(fleet, "abab")
    time.sleep(2)
    database.kill()
    time.sleep(12)
    before = len(fleet.acknowledged)
    sent = len(fleet.upstream.requests)
    time.sleep(4)
    if len(fleet.acknowledged) == before:
        raise Failed("nothing was taken while the database was away")
    if len(fleet.upstream.requests) > sent:
        raise Failed("something was sent while the database was away")
    database.start()
    time.sleep(3)
    clients.stop()
    took = fleet.drained(60)
    return f"{fleet.judge()}; drained in {took:.1f} s"
