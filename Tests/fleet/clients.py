"""Writers that go on with another gateway when theirs does not answer."""

import threading
import time

import holding


class Clients:
    """Each writes its own values to its own entities in order; `names` are the gateways with which they begin.

    `isPatient`: each waits until its writes have arrived before it goes to another gateway, because one that keeps writes while the
    database is away promises no order with those of others.
    """

    def __init__(self, fleet, names, *, pause=0.02, isPatient=False):
        self.fleet, self.pause, self.isStopping, self.isPaused = fleet, pause, False, False
        self.refused, self.isPatient = 0, isPatient
        self.homes, self.places, self.goesHome = list(names), list(names), [False] * len(names)
        self.threads = [threading.Thread(target=self.run, args=(n,), daemon=True) for n in range(len(names))]
        for thread in self.threads:
            thread.start()

    def run(self, n):
        others = list(self.fleet.nodes)
        count = 0
        while not self.isStopping:
            if self.isPaused:
                time.sleep(0.1)
                continue
            if self.goesHome[n]:
                self.move(n, self.homes[n])
                self.goesHome[n] = False
            count += 1
            node = self.places[n]
            status = self.fleet.write(node, f"{n}-{count % 5}", f"c{n}-{count}")
            if status not in (200, 202):
                self.refused += 1
                self.move(n, others[(others.index(node) + 1) % len(others)])
            time.sleep(self.pause)

    def move(self, n, node):
        while self.isPatient and node != self.places[n] and not self.isStopping and self.waits(n):
            time.sleep(0.2)
        self.places[n] = node

    def waits(self, n):
        """True while an acknowledged write of the client has not arrived."""
        with self.fleet.lock:
            own = [write for write in self.fleet.acknowledged if write[1].startswith(f"c{n}-")]
        return bool(holding.missing(own[-50:], self.fleet.upstream.effects()))

    def go_home(self):
        """Each goes on with the gateway with which it began."""
        self.goesHome = [True] * len(self.homes)

    def stop(self):
        self.isStopping = True
        for thread in self.threads:
            thread.join(20)

    def rate(self, seconds):
        """Acknowledged writes per second from now on."""
        before = len(self.fleet.acknowledged)
        time.sleep(seconds)
        return (len(self.fleet.acknowledged) - before) / seconds
