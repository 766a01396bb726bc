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
    """Writes the lines RESOURCE-0, RESOURCE-1 … in sequence, and keeps the acknowledged ones."""

    def __init__(self, port):
        self.port, self.acknowledged, self.queued, self.refused = port, [], 0, []

    async def write(self, resource, number, within=20):
        line = f"{resource}-{number}"
        status, *_ = await exchange(
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

    async def fill(self, resources, each):
        async def one(resource):
            for number in range(each):
                await self.write(resource, number)

        await asyncio.gather(*(one(f"r{n}") for n in range(resources)))


def verdict(ledger, writer):
    """(lost, doubled, out of order)."""
    lost = [line for line in writer.acknowledged if not ledger.effects[line]]
    doubled = [line for line, count in ledger.effects.items() if count > 1]
    ranks = {resource: [int(line.split("-")[1]) for line in lines] for resource, lines in ledger.lines.items()}
    return len(lost), len(doubled), sum(order != sorted(order) for order in ranks.values())
