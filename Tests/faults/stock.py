"""An origin and a client that record the operation count of the failing disk for each event."""

import collections
import hashlib
import json

from origin import exchange
from writes import Ledger

DEADLINE = 12.0
SIZES = {"small": 2_000, "large": 60_000, "huge": 400_000}


def body_of(path):
    size = SIZES.get(path.split("/")[1], 100)
    return b"".join(hashlib.sha256(f"{path} {n}".encode()).digest() for n in range(size // 32 + 1))[:size]


class Stock(Ledger):
    """Bodies by path, fresh for an hour. Writes as in `Ledger`; responses to those in `mute` are lost, those in `unwanted` are refused."""

    def __init__(self, disk):
        super().__init__()
        self.disk, self.arrivals, self.mute, self.unwanted = disk, [], set(), set()

    @property
    def is_there(self):
        return self.server is not None and self.server.is_serving()

    def reply(self, method, target, head):
        if method != "GET":
            return super().reply(method, target, head)
        body = body_of(target)
        return b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    async def answer(self, method, target, head, body):
        line = json.loads(body)["line"] if method == "POST" else None
        if line in self.unwanted:
            return b"HTTP/1.1 422 Unprocessable Content\r\nContent-Length: 0\r\n\r\n"
        answer = await super().answer(method, target, head, body)
        if line in self.mute:
            self.mute.discard(line)
            raise ConnectionError(line)
        return answer

    def take(self, target, head, body):
        # A write that could not be stored passes without a key: it is sent once.
        if "\r\nidempotency-key: " not in head.lower():
            head += f"Idempotency-Key: none-{len(self.arrivals)}\r\n"
        self.arrivals.append((self.disk.count, target, head, body))
        super().take(target, head, body)

    def remember(self, arrivals):
        """Restores the state as if only these requests had arrived."""
        self.lines, self.effects, self.bodies = collections.defaultdict(list), collections.Counter(), {}
        self.arrivals, self.mute = [], set()
        for arrival in arrivals:
            super().take(*arrival[1:])
            self.arrivals.append(arrival)


class Client:
    """The requests to the server, and its promises."""

    def __init__(self, stock, port, bad):
        self.stock, self.disk, self.port, self.bad = stock, stock.disk, port, bad
        self.remember({}, {})

    async def write(self, resource, number, size=0):
        line = f"{resource}-{number}"
        body = self.issued[line] = json.dumps({"line": line, "pad": "x" * size}).encode()
        path = f"/v1/notes/{resource}/lines"
        status, fields, _, seconds = await exchange(self.port, "POST", path, "Content-Type: application/json\r\n", body, DEADLINE)
        self.ids[line] = fields.get("rockpool-operation")
        if status in (200, 202):
            self.acknowledged[line] = self.disk.count
        self.judge(f"POST {line}", status, seconds, (200, 202))
        return status

    async def read(self, path):
        status, _, body, seconds = await exchange(self.port, "GET", path, within=DEADLINE)
        self.judge(f"GET {path}", status, seconds, (200,))
        # Requests are forwarded even if the disk fails.
        if status >= 500 and self.stock.is_there and not self.is_offline:
            self.bad.append(f"GET {path}: {status} while the origin is there")
        if status == 200 and body is not None and body != body_of(path):
            self.bad.append(f"GET {path}: wrong bytes, {len(body)} of them")
        self.reads.append((path, status, body is not None))
        return status

    def judge(self, what, status, seconds, good):
        """A closed connection is acceptable after a kill; a timeout is not."""
        if seconds >= DEADLINE:
            self.bad.append(f"{what}: no answer within {DEADLINE:.0f} s")
        elif status and status not in good and status < 500:
            self.bad.append(f"{what}: {status}")

    def remember(self, issued, acknowledged):
        """Restores the state as if only these requests had been sent. Line → body; line → operations counted at its acknowledgement."""
        self.issued, self.acknowledged, self.reads = dict(issued), dict(acknowledged), []
        # The operation of each line; True if the server's network is switched off.
        self.ids, self.is_offline = {}, False
