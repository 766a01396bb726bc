"""An asynchronous standby is promoted: it lacks what was acknowledged last. Each returns what was measured, or raises `Failed`."""

import time

from fleet import Fleet, until
from holding import Failed
from postgres import Cluster
from relay import Relay


def behind(given):
    """A fleet whose database has a standby for which no commit waits, with the line to it."""
    database = Cluster()
    line = Relay(database.port)
    standby = Cluster(standby_of=database, line=line)
    fleet = Fleet(given.binary, database, standby, absence="refuse", relayed=False)
    fleet.write("a", "one", "c0-1")
    time.sleep(2)
    return database, standby, fleet, line


def take(fleet):
    """Writes of `a` that are lost."""
    for n in range(2, 6):
        if fleet.write("a", "one", f"c0-{n}") != 202:
            raise Failed("no acknowledgement without a standby")


def lost(given):
    """S7: the primary dies and a standby that it did not wait for is promoted: the loss is counted and said."""
    database, standby, fleet, line = behind(given)
    line.cut()
    take(fleet)
    database.kill()
    standby.promote()
    until(lambda: all("lacks changes" in server.log for server in fleet.nodes.values()), 20, "both gateways say what is lost")
    if fleet.write("a", "one", "c0-9") == 202:
        raise Failed("a write was acknowledged by the older copy")
    line = next(line for line in fleet.nodes["a"].log.splitlines() if "lacks changes" in line)
    return f"refused and said: {line[line.index('lacks') :][:80]}"


def unseen(given):
    """S7u: as S7, and one gateway was away when the writes were taken: it goes on, and the one that has seen them is still refused."""
    database, standby, fleet, line = behind(given)
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    a.network("offline")
    b.stop(keep=True)
    line.cut()
    take(fleet)
    database.kill()
    standby.promote()
    b.start()
    until(lambda: b.log.count("joined the fleet") > 1, 20, "b joins the fleet of the new primary")
    # The numbers of a promoted server go on after a gap, so that these are higher than those of what is lost.
    answers = [fleet.write("b", "two", f"c9-{n}") for n in range(3)]
    if answers != [202] * 3:
        raise Failed(f"b answered {answers}")
    until(lambda: "lacks changes" in a.log or a.log.count("joined the fleet") > 1, 20, "a says what is lost")
    a.network("auto")
    time.sleep(4)
    status = fleet.write("a", "one", "c0-9")
    if "lacks changes" not in a.log or status == 202:
        raise Failed(f"a answered {status}, and joined {a.log.count('joined the fleet') - 1} times; missing {fleet.missing()}")
    effects = fleet.upstream.effects()
    if effects.get("/items/two") != ["c9-0", "c9-1", "c9-2"] or "c0-5" in effects.get("/items/one", []):
        raise Failed(f"sent were {effects}")
    line = next(line for line in a.log.splitlines() if "lacks changes" in line)
    return f"b goes on, a is refused and says: {line[line.index('lacks') :][:80]}"
