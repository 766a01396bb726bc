"""An origin that counts the effects of writes by key, and a client that records acknowledged writes."""

import asyncio
import collections
import json
import re
import time

from origin import Origin, exchange

# Each write is an action on a resource: not idempotent by itself, one lane per resource.
QUEUE = 'idempotency: { honoured: yes }, resources: [{ collection: /v1/notes, item: "/v1/notes/{id}" }]'
STATUS = {200: b"OK", 204: b"No Content"}


class Ledger(Origin):
    """POST /v1/notes/N/lines appends; a repeated key has no further effect, as at an origin that honours keys."""

    def __init__(self, delay=0.0):
        super().__init__()
        self.lines, self.effects, self.bodies = collections.defaultdict(list), collections.Counter(), {}
        self.requests, self.repeats, self.delay, self.moments = 0, 0, delay, []

    async def answer(self, method, target, head, body):
        if method == "POST":
            await asyncio.sleep(self.delay)
            self.take(target, head, body)
        return self.reply(method, target, head)

    def reply(self, method, target, head):
        status, answer = (204, b"") if target == "/healthz" else (200, b"{}")
        return b"HTTP/1.1 %d %s\r\nCache-Control: no-store\r\nContent-Length: %d\r\n\r\n%s" % (
            status,
            STATUS[status],
            len(answer),
            b"" if method == "HEAD" else answer,
        )

    def take(self, target, head, body):
        key = re.search(r"(?im)^idempotency-key: (.+?)\r$", head).group(1)
        self.requests += 1
        self.moments.append(time.monotonic())
        if key in self.bodies:
            self.repeats += 1
            return
        self.bodies[key] = body
        line = json.loads(body)["line"]
        self.effects[line] += 1
        self.lines[target.split("/")[3]].append(line)


class Writer:
    """Writes the lines RESOURCE-0, RESOURCE-1 … in sequence, and keeps the acknowledged ones.

    `abandoned`: those that it did not wait for any longer while their connection was open. The next one is sent beside such a write, so no
    order is promised between the two. A connection that ends without an answer ends its write: what follows comes later.
    """

    def __init__(self, port):
        self.port, self.acknowledged, self.queued, self.refused, self.abandoned = port, [], 0, [], set()

    async def write(self, resource, number, within=20):
        line = f"{resource}-{number}"
        status, _, _, seconds = await exchange(
            self.port,
            "POST",
            f"/v1/notes/{resource}/lines",
            "Content-Type: application/json\r\n",
            json.dumps({"line": line}).encode(),
            within,
        )
        if status in (200, 202):
            self.acknowledged.append(line)
            self.queued += status == 202
        elif status:
            self.refused.append((line, status))
        elif seconds >= within:
            self.abandoned.add(line)

    async def fill(self, resources, each):
        async def one(resource):
            for number in range(each):
                await self.write(resource, number)

        await asyncio.gather(*(one(f"r{n}") for n in range(resources)))


def verdict(ledger, writer):
    """(lost, doubled, resources out of order)."""
    lost = [line for line in writer.acknowledged if not ledger.effects[line]]
    doubled = [line for line, count in ledger.effects.items() if count > 1]
    return len(lost), len(doubled), sum(is_disordered(lines, writer.abandoned) for lines in ledger.lines.values())


def is_disordered(lines, abandoned):
    """True if a line stands behind a later one, unless its writer sent that beside it."""
    highest = -1
    for line in lines:
        number = int(line.split("-")[1])
        if number < highest and line not in abandoned:
            return True
        highest = max(highest, number)
    return False
