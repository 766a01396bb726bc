"""Two gateways that share one outbox, their clients, and what must hold at the end."""

import http.client
import shutil
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

from postgres import Cluster  # noqa: E402
from relay import Relay  # noqa: E402
from upstream import Upstream  # noqa: E402

from server import Server  # noqa: E402


class Failed(Exception):
    """What did not hold."""


def until(condition, seconds, what):
    """Waits for a condition; returns the seconds that it took."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > seconds:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.1)
    return time.monotonic() - begun


class Fleet:
    """`servers`: clusters of PostgreSQL. Each node has the addresses of all, and lines of its own to them."""

    def __init__(
        self,
        binary,
        *servers,
        nodes="ab",
        absence="local",
        processing="2s",
        environment=None,
        relayed=True,
        patience="connect: 1s, first_byte: 30s, idle: 30s",
    ):
        self.upstream = Upstream()
        self.acknowledged, self.lock = [], threading.Lock()
        self.nodes, self.database = {}, {}
        for name in nodes:
            self.database[name] = [Relay(server.port) for server in servers]
            # Behind a relay a dead server still accepts connections, where libpq goes on with the next address only after a refusal.
            places = ",".join(f"127.0.0.1:{end.port}" for end in (self.database[name] if relayed else servers))
            url = f"postgresql://postgres@{places}/rockpool?sslmode=disable"
            self.nodes[name] = Server(
                binary,
                self.upstream.port,
                outbox=f'store: postgresql, url: "{url}", node: {name}, when_unreachable: {absence}',
                upstream=f"idempotency: {{ honoured: yes, max_processing: {processing} }}",
                patience=patience,
                environment=(environment or {}).get(name),
                start=False,
            )
            server, first = self.nodes[name], next(iter(self.nodes.values()))
            if server is not first:
                # The nodes of a fleet have one secret.
                Path(server.scratch, "state").mkdir(mode=0o700)
                shutil.copy(Path(first.scratch, "state/install-key"), Path(server.scratch, "state/install-key"))
            server.start()
        until(lambda: all("joined the fleet" in server.log for server in self.nodes.values()), 15, "every node joins the fleet")

    def write(self, node, entity, value, timeout=15, wait=False):
        """Returns the status; None without an answer."""
        server = self.nodes[node]
        client = http.client.HTTPConnection("127.0.0.1", server.gateway, timeout=timeout)
        fields = {"Content-Type": "text/plain", "Rockpool-No-Merge": "true"}
        if not wait:
            fields["Prefer"] = "respond-async"
        try:
            client.request("POST", f"/items/{entity}", value, fields)
            answer = client.getresponse()
            answer.read()
            if answer.status in (200, 202):
                with self.lock:
                    self.acknowledged.append((f"/items/{entity}", value))
            return answer.status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            client.close()

    def missing(self):
        effects = self.upstream.effects()
        return [w for w in self.acknowledged if w[1] not in effects.get(w[0], [])]

    def judge(self):
        """Raises `Failed` when an acknowledged write is lost or doubled, or a client's order is broken."""
        effects = self.upstream.effects()
        for name, server in self.nodes.items():
            for line in server.log.splitlines():
                if " error " in line and "SQLite error" in line:
                    raise Failed(f"node {name}: {line[:300]}")
        lost = self.missing()
        doubled = [(path, v) for path, values in effects.items() for v in set(values) if values.count(v) > 1]
        if lost:
            raise Failed(f"{len(lost)} acknowledged writes are lost: {lost[:3]}")
        if doubled:
            raise Failed(f"{len(doubled)} writes are doubled: {doubled[:3]}")
        places = {(path, v): i for path, values in effects.items() for i, v in enumerate(values)}
        last = {}
        for path, value in self.acknowledged:
            client = (path, value.split("-")[0])
            if places[(path, value)] < last.get(client, -1):
                raise Failed(f"out of order: {path} {value}")
            last[client] = places[(path, value)]
        return f"{len(self.acknowledged)} acknowledged, 0 lost, 0 doubled, in order; {len(self.upstream.requests)} requests"

    def drained(self, seconds):
        try:
            return until(lambda: not self.missing(), seconds, "every acknowledged write is at the upstream")
        except Failed as failure:
            details = [f"{len(self.missing())} missing, such as {self.missing()[:2]}"]
            details += [f"{name}: {server.log[-1500:]}" for name, server in self.nodes.items()]
            raise Failed(f"{failure}\n" + "\n".join(details)) from None


class Clients:
    """Writers that go on with the other gateway when theirs does not answer; each writes its own values to its own entities in order."""

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


def discard():
    Server.discard_all()
    Cluster.discard_all()
