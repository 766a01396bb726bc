"""Writers that go on with another gateway when theirs does not answer."""

import threading
import time


class Clients:
    """Each writes its own values to its own entities in order; `names` are the gateways with which they begin."""

    def __init__(self, fleet, names, *, pause=0.02):
        self.fleet, self.pause, self.isStopping = fleet, pause, False
        self.refused = 0
        self.threads = [threading.Thread(target=self.run, args=(n, name), daemon=True) for n, name in enumerate(names)]
        for thread in self.threads:
            thread.start()

    def run(self, n, node):
        others = list(self.fleet.nodes)
        count = 0
        while not self.isStopping:
            count += 1
            status = self.fleet.write(node, f"{n}-{count % 5}", f"c{n}-{count}")
            if status not in (200, 202):
                self.refused += 1
                node = others[(others.index(node) + 1) % len(others)]
            time.sleep(self.pause)

    def stop(self):
        self.isStopping = True
        for thread in self.threads:
            thread.join(20)

    def rate(self, seconds):
        """Acknowledged writes per second from now on."""
        before = len(self.fleet.acknowledged)
        time.sleep(seconds)
        return (len(self.fleet.acknowledged) - before) / seconds
