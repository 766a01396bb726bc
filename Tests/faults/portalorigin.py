"""An API, and the captive portal that answers in its place at the same address."""

import asyncio
import collections
import hashlib
import json
import random
import re
import time
from dataclasses import dataclass, field

from origin import Origin

MARK = "captive-3f9a"
PAGE = f"<!doctype html><title>{MARK}</title><form action=/portal/login>Sign in</form>".encode()
HTML, JSON = "Content-Type: text/html; charset=utf-8\r\n", "Content-Type: application/json\r\n"
ELSEWHERE, WITHIN = "http://login.portal.example/", "/portal/login"
# The response to every request: (status, fields, body); a redirect without a target goes to either one.
FACES = {
    "html": (200, HTML, PAGE),
    "json": (200, JSON, b'{"portal": "login"}'),
    "elsewhere": (302, ELSEWHERE, b""),
    "within": (302, WITHIN, b""),
    "301": (301, None, b""),
    "308": (308, None, b""),
    "511": (511, HTML, PAGE),
    "204": (204, "", b""),
    "kept html": (200, HTML + "Cache-Control: max-age=3600\r\n", PAGE),
}
# A response of these kinds is recognizable as not the API's, for any client.
TELLING = ("html", "elsewhere", "511", "kept html")
# The API's own `/healthz` gives the same response: neither a probe nor a write distinguishes this portal from the API.
UNTELLABLE = "204"
# Limits the list, regardless of the length of the run.
NOTES = 40
AGES = {"items": 1, "lists": 2, "images": 5, "notes": 1}


@dataclass
class Visit:
    """One appearance of the portal."""

    face: str
    begun: float
    ended: float = 0.0
    asked: int = 0
    probes: int = 0
    # The time of the first response to a request other than a probe.
    told: float = 0.0


@dataclass
class Taken:
    """A write that the portal answered as if it had been applied."""

    face: str
    visit: Visit
    at: float
    # No response had been given in this visit when it arrived: Rockpool could not know.
    was_first: bool = field(default=False)

    @property
    def before_end(self):
        """Seconds from the response to the portal's end: the time in which a check of the connection could detect it."""
        return (self.visit.ended or time.monotonic()) - self.at


def stamp(data):
    return hashlib.sha256(data).hexdigest()


class Site(Origin):
    """Items and lists that change by themselves, images that do not, notes that are written; every write is counted by its name."""

    def __init__(self, seed):
        super().__init__()
        self.chance, self.visit, self.visits, self.given = random.Random(f"{seed} site"), None, [], collections.defaultdict(set)
        self.versions, self.notes, self.effects, self.keys = collections.Counter(), {}, collections.Counter(), {}
        self.shelf = {f"shelf-{number}": {"title": f"shelved {number}", "tags": []} for number in range(8)}
        self.repeats, self.port, self.taken, self.requests = 0, None, collections.defaultdict(list), 0

    # MARK: the active server

    async def there(self, port=None):
        self.port = port or self.port
        await self.open(self.port)

    def arrive(self, face):
        self.visit = Visit(face, time.monotonic())
        self.visits.append(self.visit)
        self.cut()

    def leave(self):
        self.visit.ended, self.visit = time.monotonic(), None
        self.cut()

    def cut(self):
        """Some portals close existing connections, others answer on them."""
        if self.chance.random() < 0.6:
            for writer in list(self.writers):
                writer.transport.abort()

    async def answer(self, method, target, head, body):
        if self.visit:
            return self.captive(self.visit, method, target, head, body)
        self.requests += 1
        await asyncio.sleep(self.chance.uniform(0, 0.004))
        return self.own(method, target, head, body)

    # MARK: the portal

    def captive(self, visit, method, target, head, body):
        face = visit.face if visit.face != "mixed" else self.chance.choice(tuple(FACES))
        status, fields, content = FACES["html" if target.startswith(WITHIN) else face]
        if 300 <= status < 400:
            fields = f"Location: {fields or self.chance.choice((ELSEWHERE, WITHIN))}\r\n"
        now = time.monotonic()
        if target == "/healthz" or method == "HEAD":
            visit.probes += 1
        else:
            visit.asked += 1
            if line := name_of(head, body):
                self.taken[line].append(Taken(face, visit, now, not visit.told or now - visit.told < 0.05))
            visit.told = visit.told or now
        return reply(status, fields, content, method)

    # MARK: the API

    def own(self, method, target, head, body):
        path = target.partition("?")[0]
        if path == "/healthz":
            return reply(204, "", b"", method)
        if method in ("POST", "PUT", "PATCH", "DELETE"):
            return self.write(method, path, head, body)
        kind = path.split("/")[2] if path.startswith("/v1/") and path.count("/") >= 2 else ""
        if kind not in AGES:
            return reply(404, JSON, b'{"error": "nothing here"}', method)
        content = self.content(kind, path, target)
        if content is None:
            return reply(404, JSON, b'{"error": "no such note"}', method)
        tag, form = f'"{stamp(content)[:16]}"', "Content-Type: image/png\r\n" if kind == "images" else JSON
        fields = f"ETag: {tag}\r\nCache-Control: max-age={AGES[kind]}\r\n"
        if re.search(rf"(?im)^if-none-match:.*{tag}", head):
            return reply(304, fields, b"", method)
        self.given[target].add(stamp(content))
        return reply(200, fields + form, content, method)

    def content(self, kind, path, target):
        """The content, or None if it does not exist."""
        if kind == "images":
            return hashlib.shake_256(target.encode()).digest(20_000)
        if kind == "notes":
            if path == "/v1/notes":
                return json.dumps([{"id": name, **note} for name, note in sorted(self.notes.items())]).encode()
            name = path.split("/")[3]
            note = self.shelf.get(name) or self.notes.get(name)
            return json.dumps({"id": name, **note}).encode() if note else None
        version = self.versions[target]
        thing = {"id": target.rsplit("/", 1)[-1], "version": version, "pad": stamp(f"{target} {version}".encode()) * 8}
        return json.dumps(thing if kind == "items" else [thing] * 12).encode()

    def change(self, target):
        self.versions[target] += 1

    def write(self, method, path, head, body):
        """A repeated key has no further effect."""
        key = key_of(head)
        if key and key in self.keys:
            self.repeats += 1
            return self.keys[key]
        self.effects[name_of(head, body)] += 1
        parts, note = path.split("/"), json.loads(body) if body else {}
        status, fields = 200, "X-Applied: 1\r\n"
        if path == "/v1/notes":
            name = f"n{len(self.keys)}"
            status, fields = 201, f"{fields}Location: /v1/notes/{name}\r\n"
            self.keep(name, note)
        elif parts[2] == "notes" and len(parts) == 4:
            name = parts[3]
            if method == "DELETE":
                self.notes.pop(name, None)
                status = 204
            else:
                self.keep(name, {**(self.notes.get(name, {}) if method == "PATCH" else {}), **note})
        content = b"" if status == 204 else json.dumps({"id": parts[-1] if status == 200 else name, **note}).encode()
        answer = reply(status, fields + (JSON if content else ""), content, method)
        if key:
            self.keys[key] = answer
        return answer

    def keep(self, name, note):
        self.notes[name] = note
        while len(self.notes) > NOTES:
            self.notes.pop(next(iter(self.notes)))


def reply(status, fields, content, method):
    length = "" if status in (204, 304) else f"Content-Length: {len(content)}\r\n"
    return f"HTTP/1.1 {status} {'OK' if status < 300 else 'Other'}\r\n{fields}{length}\r\n".encode() + (
        b"" if method == "HEAD" else content
    )


def key_of(head):
    found = re.search(r"(?im)^idempotency-key: *\"?([^\"\r]+)\"?\r?$", head)
    return found and found[1]


def name_of(head, body):
    """The name of a write: in its content, or its client's key."""
    found = re.search(rb'"line": ?"([^"]+)"', body)
    return found[1].decode() if found else key_of(head)
