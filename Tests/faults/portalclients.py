"""The clients of the portal run: they read and write, and record the responses."""

import asyncio
import collections
import json
import time
from dataclasses import dataclass

from origin import exchange
from portalorigin import MARK, stamp

ACCEPTS = {
    "any": "*/*",
    "json": "application/json",
    "browser": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "image": "image/avif,image/webp,*/*",
    "pages only": "text/html,application/xhtml+xml",
}
ITEMS, LISTS, IMAGES, SHELVED = 30, 6, 8, 4
# The time after which a good copy is certainly stored completely.
STORED_AFTER = 0.3


@dataclass
class Told:
    """The response to a write."""

    status: int
    # Made by Rockpool, or by the API; neither is a portal's response.
    is_queued: bool
    is_applied: bool
    operation: str
    method: str


class Memory:
    """All reads and writes with their responses."""

    def __init__(self, site, has_probe):
        self.site, self.has_probe, self.asked, self.kept, self.told = site, has_probe, set(), {}, {}
        self.reads, self.writes, self.wrong, self.examples = collections.Counter(), collections.Counter(), collections.Counter(), {}

    def note_read(self, target, accept, status, fields, body, begun):
        """`begun` is the time of the request: a copy stored by then must be served. A response may stay unstored if the portal appeared
        meanwhile: only a response served from the cache counts as a copy."""
        self.asked.add((target, accept))
        good = status == 200 and body is not None and stamp(body) in self.site.given[target]
        self.reads["good" if good else f"other {status}"] += 1
        if good and any(word in fields.get("cache-status", "") for word in ("hit", "fwd-status=304")):
            self.kept.setdefault((target, accept), time.monotonic())
        elif not good and not self.may_pass(accept, status) and self.kept.get((target, accept), begun) < begun - STORED_AFTER:
            what = "the portal's answer" if is_portals(status, fields, body) else f"{status or 'no answer'}"
            face = self.site.visit.face if self.site.visit else "gone"
            self.wrong[what, face, accept] += 1
            self.examples.setdefault(
                (what, face, accept),
                f"GET {target} ({accept}; portal {face}): {status} {fields.get('cache-status', '')}; {fields.get('proxy-status', '')}",
            )

    def may_pass(self, accept, status):
        """An answer without a body is no page; and without an expectation a client that asks for pages gets what answers, unstored."""
        return status == 204 or (accept == "browser" and not self.has_probe)

    def note_write(self, line, method, status, fields):
        self.writes[status] += 1
        if 200 <= status < 300:
            self.told[line] = Told(
                status, "rockpool-operation" in fields, "x-applied" in fields, fields.get("rockpool-operation", ""), method
            )


def is_portals(status, fields, body):
    return MARK.encode() in (body or b"") or b'"portal"' in (body or b"") or "portal" in fields.get("location", "") or status in (204, 511)


class Doors:
    """Access by the gateway or by the proxy: a port and a prefix of the path."""

    def __init__(self, server, port):
        self.ways = {"gateway": (server.gateway, ""), "proxy": (server.proxy, f"http://127.0.0.1:{port}")}

    def pick(self, chance):
        return self.ways[chance.choice(tuple(self.ways))]


def known():
    """The URLs that are read before the portal first appears, with their Accept fields."""
    for number in range(ITEMS):
        yield f"/v1/items/{number}", ("any", "json", "browser")
    for number in range(LISTS):
        yield f"/v1/lists/{number % 2}?page={number}", ("any", "json", "browser")
    for number in range(IMAGES):
        yield f"/v1/images/{number}.png", ("any", "image")
    # From the written resource, but other notes: a write based on a copy that another write has changed is a conflict.
    for number in range(SHELVED):
        yield f"/v1/notes/shelf-{number}", ("json", "any")


async def read(memory, door, target, accept):
    begun = time.monotonic()
    status, fields, body, _ = await exchange(door[0], "GET", door[1] + target, f"Accept: {ACCEPTS[accept]}\r\n", within=20)
    memory.note_read(target, accept, status, fields, body, begun)


async def reader(memory, doors, chance, is_over):
    """Reads mostly stored URLs, and occasionally new ones, for which no portal's response may be stored."""
    targets, cold = list(known()), 1000 * chance.randrange(1, 1000)
    while not is_over():
        target, accepts = chance.choice(targets)
        draw = chance.random()
        if draw < 0.1:
            cold += 1
            target, accepts = f"/v1/{chance.choice(('items', 'images'))}/{cold}", ("any", "json", "browser", "pages only")
        await read(memory, doors.pick(chance), target, chance.choice(accepts))
        await asyncio.sleep(chance.uniform(0.01, 0.06))


def next_write(name, number, chance):
    """(name, method, path, content or None). No note is changed twice: queueing after a live write is tested by another run."""
    turn, note = number % 8, f"/v1/notes/{name}-{number}"
    line = f"{name}.{number}"
    if turn == 7:
        return line, "DELETE", note, None
    method, path = (
        ("PUT", note),
        ("PATCH", note),
        ("POST", "/v1/notes"),
        ("POST", f"/v1/notes/{name}-{number - 3}/lines"),
        ("PUT", f"/v1/settings/{name}-{number}"),
        ("PATCH", note),
        ("POST", "/v1/logs"),
    )[turn]
    return line, method, path, json.dumps({"line": line, "title": f"{chance.random()}"}).encode()


def fields_of(line, content, chance):
    """A deletion is identified by its key only; of the other writes some have a client's key, some get Rockpool's."""
    key = f'Idempotency-Key: "{line}"\r\n' if content is None or chance.random() < 0.5 else ""
    form = "Content-Type: application/json\r\n" if content else ""
    accept = chance.choice(("Accept: application/json\r\n", "Accept: */*\r\n", ""))
    return key + form + accept + chance.choice(("",) * 4 + ("Prefer: respond-async\r\n",))


async def writer(memory, doors, name, chance, is_over):
    number = 0
    while not is_over():
        line, method, path, content = next_write(name, number, chance)
        number += 1
        port, before = doors.pick(chance)
        status, fields, _, _ = await exchange(port, method, before + path, fields_of(line, content, chance), content or b"", 20)
        memory.note_write(line, method, status, fields)
        await asyncio.sleep(chance.uniform(0.03, 0.15))


async def curl(memory, doors, chance, is_over):
    """The same requests by curl, with more reads than writes."""
    targets, number = list(known()), 0
    while not is_over():
        port, before = doors.pick(chance)
        way = ["--noproxy", "", "-x", f"http://127.0.0.1:{port}"] if before else ["--noproxy", "*"]
        place = before or f"http://127.0.0.1:{port}"
        begun = time.monotonic()
        if chance.random() < 0.7:
            target, accepts = chance.choice(targets)
            accept = chance.choice(accepts)
            status, fields, body = await run_curl(*way, "-H", f"Accept: {ACCEPTS[accept]}", place + target)
            memory.note_read(target, accept, status, fields, body, begun)
        else:
            line, method, path, content = next_write("curl", number, chance)
            number += 1
            words = ["-X", method, *(["-d", content.decode()] if content else [])]
            for one in fields_of(line, content, chance).split("\r\n")[:-1]:
                words += ["-H", one]
            status, fields, _ = await run_curl(*way, *words, place + path)
            memory.note_write(line, method, status, fields)
        await asyncio.sleep(chance.uniform(0.1, 0.3))


async def run_curl(*words):
    """(status, fields, body); status 0 without a response."""
    process = await asyncio.create_subprocess_exec(
        "curl", "-s", "-i", "--max-time", "20", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    head, _, body = (await process.communicate())[0].partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 ") or process.returncode:
        return 0, {}, None
    lines = head.decode("latin-1").split("\r\n")
    return int(lines[0].split(" ")[1]), {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}, body
