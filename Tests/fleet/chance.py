"""S14: faults in an order that a seed decides, for as long as one likes."""

import os
import random
import signal
import time

from clients import Clients
from fleet import Fleet, until
from handover import check_idle
from holding import check
from postgres import Cluster


class Weather:
    """The faults of one run; each is begun, lasts, and is over before the next. Spans reach beyond the lease, and stay below it."""

    def __init__(self, fleet, database, chance):
        self.fleet, self.database, self.chance = fleet, database, chance
        self.counts = {}

    def strike(self):
        faults = [self.kill, self.stop, self.cut, self.cut_all, self.slow_line, self.drop, self.restart, self.pause, self.terminate]
        fault = self.chance.choice([*faults, self.away, self.slow])
        self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1
        span, node = self.chance.choice([1, 4, 11, 14, 18, 25]), self.chance.choice(list(self.fleet.nodes))
        print(f"    {fault.__name__} {node} {span} s", flush=True)
        fault(node, span)
        # What a gateway took alone has no order with what its clients write through another before it is handed over.
        until(lambda: all(self.is_whole(server) for server in self.fleet.nodes.values()), 40, f"every node is back after {fault.__name__}")
        time.sleep(self.chance.choice([0, 2, 6]))

    @staticmethod
    def is_whole(server):
        standing = server.call("GET", "/v1/status")["fleet"]
        return standing["database"] == "there" and standing["held"] == 0

    def kill(self, node, span):
        self.fleet.nodes[node].kill()
        time.sleep(span)
        self.fleet.nodes[node].start()

    def stop(self, node, span):
        os.kill(self.fleet.nodes[node].pid, signal.SIGSTOP)
        time.sleep(span)
        os.kill(self.fleet.nodes[node].pid, signal.SIGCONT)

    def cut(self, node, span):
        for link in self.fleet.database[node]:
            link.cut()
        time.sleep(span)
        for link in self.fleet.database[node]:
            link.mend()

    def cut_all(self, node, span):
        for name in self.fleet.nodes:
            for link in self.fleet.database[name]:
                link.cut()
        time.sleep(span)
        for name in self.fleet.nodes:
            for link in self.fleet.database[name]:
                link.mend()

    def slow_line(self, node, span):
        for link in self.fleet.database[node]:
            link.delay = 0.1
        time.sleep(span)
        for link in self.fleet.database[node]:
            link.delay = 0

    def drop(self, node, span):
        for _ in range(5):
            for link in self.fleet.database[node]:
                link.drop()
            time.sleep(span / 10)

    def pause(self, node, span):
        self.database.pause()
        time.sleep(span)
        self.database.pause(False)

    def restart(self, node, span):
        self.database.kill()
        time.sleep(span)
        self.database.start()

    def terminate(self, node, span):
        for _ in range(5):
            self.database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'rockpool/%'")
            time.sleep(span / 10)

    def away(self, node, span):
        self.fleet.upstream.isAway = True
        time.sleep(span)
        self.fleet.upstream.isAway = False

    def slow(self, node, span):
        self.fleet.upstream.delay = 0.5
        time.sleep(span)
        self.fleet.upstream.delay = 0


def rest(fleet, clients):
    """What counts as running after everything is sent would keep later writes from being sent."""
    clients.isPaused = True
    time.sleep(1)
    fleet.drained(120)
    check_idle(fleet)
    clients.isPaused = False


def by_chance(given):
    """S14: random faults (--minutes, --seed): nothing is lost, doubled or out of order."""
    minutes, seed = given.minutes or 4, given.seed
    database = Cluster()
    fleet = Fleet(given.binary, database, nodes=given.nodes or "abc")
    weather = Weather(fleet, database, random.Random(seed))
    # Not more than the gateways send: what waits at the end is what the faults have left.
    clients = Clients(fleet, "".join(fleet.nodes) * 2, pause=0.2)
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        weather.strike()
        check(fleet, isComplete=False)
        if weather.chance.random() < 0.25:
            rest(fleet, clients)
    time.sleep(3)
    clients.stop()
    took = fleet.drained(120)
    until(lambda: all(server.alive for server in fleet.nodes.values()), 1, "every gateway runs")
    check_idle(fleet)
    faults = ", ".join(f"{count} {name}" for name, count in sorted(weather.counts.items()))
    return f"seed {seed}, {minutes:g} min: {faults}; {fleet.judge()}; drained in {took:.1f} s"
