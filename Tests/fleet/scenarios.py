"""The faults of a fleet. Each returns what was measured, or raises `Failed`."""

import os
import signal
import time

from fleet import Clients, Failed, Fleet, discard, until
from postgres import Cluster
from relay import Relay

LEASE = 15


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


def plain(binary):
    """S0: what one gateway takes, the other sees and sends; each effect once."""
    fleet = Fleet(binary, Cluster())
    clients = Clients(fleet, "abab")
    time.sleep(5)
    clients.stop()
    took = fleet.drained(30)
    if fleet.upstream.overlaps:
        raise Failed(f"{fleet.upstream.overlaps} attempts of one lane overlapped")
    return f"{fleet.judge()}; drained in {took:.1f} s; {clients.refused} refused"


def killed(binary):
    """S1: SIGKILL one gateway while it sends, and never start it again."""
    fleet = Fleet(binary, Cluster())
    fleet.upstream.delay = 0.3
    clients = Clients(fleet, "aabb")
    time.sleep(4)
    fleet.nodes["a"].kill()
    time.sleep(4)
    clients.stop()
    fleet.upstream.delay = 0
    took = fleet.drained(LEASE + 45)
    return f"{fleet.judge()}; {took:.1f} s after the death"


def killed_at(binary):
    """S1k: one gateway kills itself between two steps of accepting, sending and recording a write."""
    said = []
    for point in ("K4", "K5", "K6", "K10", "K11", "K12"):
        fleet = Fleet(binary, Cluster(), environment={"a": {"ROCKPOOL_KILL_AT": f"{point}:10"}})
        clients = Clients(fleet, "aabb")
        until(lambda fleet=fleet: not fleet.nodes["a"].alive, 30, f"the end at {point}")
        time.sleep(1)
        clients.stop()
        took = fleet.drained(LEASE + 45)
        fleet.judge()
        said.append(f"{point} {took:.0f} s")
        discard()
    return f"0 lost, 0 doubled, in order; drained after {', '.join(said)}"


def stopped(binary):
    """S2: SIGSTOP one gateway in a transfer, for longer than its lease, then SIGCONT."""
    fleet = Fleet(binary, Cluster())
    fleet.upstream.delay = 0.5
    clients = Clients(fleet, "aabb")
    time.sleep(3)
    os.kill(fleet.nodes["a"].pid, signal.SIGSTOP)
    time.sleep(LEASE + 10)
    fleet.upstream.delay = 0
    before = len(fleet.upstream.requests)
    os.kill(fleet.nodes["a"].pid, signal.SIGCONT)
    time.sleep(2)
    clients.stop()
    took = fleet.drained(60)
    return f"{fleet.judge()}; {len(fleet.upstream.requests) - before} requests after SIGCONT; {took:.1f} s"


def partitioned(binary):
    """S3: one gateway loses the database, not the upstream; it stops sending before the other takes over."""
    database = Cluster()
    fleet = Fleet(binary, database)
    fleet.upstream.delay = 30
    fleet.write("a", "one", "c0-1")
    until(lambda: any(r[2] == "c0-1" for r in fleet.upstream.requests), 10, "the first attempt")
    fleet.upstream.delay = 0
    sender = database.sql("SELECT name FROM rockpool.claim JOIN rockpool.node ON node.id = claim.node LIMIT 1")[0]
    cut = time.monotonic()
    for link in fleet.database[sender]:
        link.cut()
    until(lambda: fleet.upstream.broken, 20, "the first attempt is given up")
    gave_up = fleet.upstream.broken[0] - cut
    until(lambda: len(fleet.upstream.requests) > 1, 60, "the other gateway takes over")
    second = fleet.upstream.requests[1][0] - cut
    if second < gave_up:
        raise Failed(f"two attempts at once: given up after {gave_up:.1f} s, taken over after {second:.1f} s")
    time.sleep(3)
    for link in fleet.database[sender]:
        link.mend()
    took = fleet.drained(60)
    return f"{fleet.judge()}; given up {gave_up:.1f} s after the cut, taken over after {second:.1f} s; {took:.1f} s"


def restarted(binary):
    """S5: the database is killed and started again; then its connections are ended one after the other."""
    database = Cluster()
    fleet = Fleet(binary, database)
    clients = Clients(fleet, "abab")
    time.sleep(3)
    before = len(fleet.acknowledged)
    database.kill()
    time.sleep(2)
    database.start()
    time.sleep(3)
    for _ in range(5):
        database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'rockpool/%'")
        time.sleep(0.7)
    time.sleep(3)
    clients.stop()
    fleet.drained(60)
    return f"{fleet.judge()}; {before} before the first kill; {clients.refused} refused"


def promoted(binary):
    """S6: the primary dies, its synchronous standby is promoted."""
    database, standby = synchronous()
    fleet = Fleet(binary, database, standby, absence="refuse", relayed=False)
    clients = Clients(fleet, "abab")
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


def lost(binary):
    """S7: the primary dies and a standby that it did not wait for is promoted: the loss is counted and said."""
    database = Cluster()
    line = Relay(database.port)
    standby = Cluster(standby_of=database, line=line)
    fleet = Fleet(binary, database, standby, absence="refuse", relayed=False)
    fleet.write("a", "one", "c0-1")
    time.sleep(2)
    line.cut()
    for n in range(2, 6):
        if fleet.write("a", "one", f"c0-{n}") != 202:
            raise Failed("no acknowledgement without a standby")
    database.kill()
    standby.promote()
    until(lambda: all("lacks changes" in server.log for server in fleet.nodes.values()), 20, "both gateways say what is lost")
    if fleet.write("a", "one", "c0-9") == 202:
        raise Failed("a write was acknowledged by the older copy")
    line = next(line for line in fleet.nodes["a"].log.splitlines() if "lacks changes" in line)
    return f"refused and said: {line[line.index('lacks') :][:80]}"


def divided(binary):
    """S9: the standby is promoted while the old primary lives: nothing is acknowledged by the old one."""
    database, standby = synchronous()
    fleet = Fleet(binary, database, standby, absence="refuse", relayed=False)
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


def unwarranted(binary):
    """S8: the standby is cut off, and the waits of our commits are cancelled: PostgreSQL says COMMIT, with a warning."""
    database, standby = synchronous()
    fleet = Fleet(binary, database, absence="refuse", nodes="a")
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
    given = len(fleet.acknowledged) - before
    if given:
        raise Failed(f"{given} writes were acknowledged without the standby")
    return f"{clients.refused} refused, none acknowledged"


def spilled(binary):
    """S10: the database is away for a while; both gateways keep what they take, and hand it over."""
    database = Cluster()
    fleet = Fleet(binary, database)
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


SCENARIOS = {
    "S0": plain,
    "S1": killed,
    "S1k": killed_at,
    "S2": stopped,
    "S3": partitioned,
    "S5": restarted,
    "S6": promoted,
    "S7": lost,
    "S8": unwarranted,
    "S9": divided,
    "S10": spilled,
}
