"""Gateways that share one outbox."""

import http.client
import shutil
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

import holding  # noqa: E402
from holding import Failed  # noqa: E402
from postgres import Cluster  # noqa: E402
from relay import Relay  # noqa: E402
from server import Server  # noqa: E402
from upstream import Upstream  # noqa: E402


def until(condition, seconds, what):
    """Waits for a condition; returns the seconds that it took."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > seconds:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.1)
    return time.monotonic() - begun


class Fleet:
    """`servers`: clusters of PostgreSQL. Each node has the addresses of all, and lines of its own to them, and to the upstream if `lined`.

    `commands`: what runs before the gateway of a node, by name; `binaries`: another gateway than `binary`, by name.
    """

    def __init__(
        self,
        binary,
        *servers,
        nodes="ab",
        absence="local",
        processing="2s",
        honoured="yes",
        upstream="",
        environment=None,
        commands=None,
        binaries=None,
        relayed=True,
        lined=False,
        joins=True,
        patience="connect: 1s, first_byte: 30s, idle: 30s",
        policy="standard",
    ):
        self.upstream, self.servers = Upstream(), servers
        self.acknowledged, self.lock = [], threading.Lock()
        self.nodes, self.database, self.lines = {}, {}, {}
        self.binary, self.binaries, self.environment, self.commands = binary, binaries or {}, environment or {}, commands or {}
        self.absence, self.relayed, self.lined, self.patience, self.policy = absence, relayed, lined, patience, policy
        self.rule = f"idempotency: {{ honoured: {honoured}, max_processing: {processing} }}{upstream}"
        for name in nodes:
            self.add(name)
        if joins:
            until(lambda: all("joined the fleet" in server.log for server in self.nodes.values()), 15, "every node joins the fleet")

    def add(self, name):
        """Starts one more node; returns its server."""
        self.database[name] = [Relay(server.port) for server in self.servers]
        # Behind a relay a dead server still accepts connections, where libpq goes on with the next address only after a refusal.
        places = ",".join(f"127.0.0.1:{end.port}" for end in (self.database[name] if self.relayed else self.servers))
        url = f"postgresql://postgres@{places}/rockpool?sslmode=disable"
        self.lines[name] = Relay(self.upstream.port)
        # The origin of an upstream is the same at every node; a parent proxy is a node's own.
        via = f', via: "http://127.0.0.1:{self.lines[name].port}"' if self.lined else ""
        server = self.nodes[name] = Server(
            self.binaries.get(name, self.binary),
            self.upstream.port,
            outbox=f'store: postgresql, url: "{url}", node: {name}, when_unreachable: {self.absence}',
            upstream=f"{self.rule}{via}",
            patience=self.patience,
            policy=self.policy,
            environment=self.environment.get(name),
            command=self.commands.get(name, ()),
            start=False,
        )
        first = next(iter(self.nodes.values()))
        if server is not first:
            # The nodes of a fleet have one secret.
            Path(server.scratch, "state").mkdir(mode=0o700)
            shutil.copy(Path(first.scratch, "state/install-key"), Path(server.scratch, "state/install-key"))
        server.start()
        return server

    def ask(self, node, method, path, body=None, fields=None, timeout=15):
        """Returns the status and the body; None without an answer."""
        client = http.client.HTTPConnection("127.0.0.1", self.nodes[node].gateway, timeout=timeout)
        try:
            client.request(method, path, body, fields or {})
            answer = client.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return None, ""
        finally:
            client.close()

    def write(self, node, entity, value, timeout=15, wait=False):
        """Returns the status; None without an answer."""
        fields = {"Content-Type": "text/plain", "Rockpool-No-Merge": "true"}
        if not wait:
            fields["Prefer"] = "respond-async"
        status, _ = self.ask(node, "POST", f"/items/{entity}", value, fields, timeout)
        if status in (200, 202):
            with self.lock:
                self.acknowledged.append((f"/items/{entity}", value))
        return status

    def sender(self, database):
        """The node that has an operation in flight."""
        return database.sql("SELECT name FROM rockpool.claim JOIN rockpool.node ON node.id = claim.node LIMIT 1")[0]

    def missing(self):
        return holding.missing(self.acknowledged, self.upstream.effects())

    def judge(self):
        """Raises `Failed` when an acknowledged write is lost or doubled, a client's order is broken, or attempts of a lane overlapped."""
        holding.check(self)
        return f"{len(self.acknowledged)} acknowledged, 0 lost, 0 doubled, in order; {len(self.upstream.requests)} requests"

    def drained(self, seconds):
        try:
            return until(lambda: not self.missing(), seconds, "every acknowledged write is at the upstream")
        except Failed as failure:
            details = [f"{len(self.missing())} missing, such as {self.missing()[:2]}"]
            details += [f"{name}: {server.log[-1500:]}" for name, server in self.nodes.items()]
            raise Failed(f"{failure}\n" + "\n".join(details)) from None


def discard():
    Server.discard_all()
    Cluster.discard_all()
