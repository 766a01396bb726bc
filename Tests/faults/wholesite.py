"""The base of the integrity run: Rockpool in front of each listener of its origin, the routes to it, the targets, and the tally."""

import asyncio
import collections
import contextlib
import http.client
import random
from pathlib import Path

from server import Server, free_port
from wholeclients import Door, Short, trusting
from wholeorigin import LISTENERS, WAYS, Nginx

KINDS = (*WAYS, "TLS upstream", "HTTP/2 upstream")
DOORS = ("gateway", "proxy", "tunnel")
GZIP = "Accept-Encoding: gzip\r\n"
PATIENT = "connect: 5s, first_byte: 20s, idle: 60s"


class Front(Server):
    """A gateway for each of nginx's listeners; traffic to the two with TLS is decrypted."""

    def __init__(self, binary, nginx):
        super().__init__(binary, nginx.ports["plain"], start=False, cache_limit="300 MB", patience=PATIENT, limits="connections: 4096")
        self.gateways = {listener: free_port() if listener != "plain" else self.gateway for listener in LISTENERS}
        with open(f"{self.scratch}/rockpool.yaml", "a") as file:
            file.writelines(
                f'  - {{ name: {name}, origin: "{nginx.origin(name)}", gateway: "127.0.0.1:{self.gateways[name]}", '
                f"intercept: true, tls: {{ ca_file: {nginx.ca} }}, timeouts: {{ {PATIENT} }} }}\n"
                for name in ("tls", "h2")
            )
        self.start()


class Tally:
    """The number of compared bodies, and the faulty ones by place."""

    def __init__(self):
        self.bodies, self.parts, self.faults, self.fresh = collections.Counter(), 0, collections.defaultdict(collections.Counter), []

    def add(self, what, where, words):
        self.faults[what][where] += 1
        self.fresh.append((what, where, words))

    def count(self, what):
        return self.faults[what].total()

    def tell(self, group):
        """Prints one line for a group with faults, and the first examples."""
        if self.fresh:
            found = collections.Counter(what for what, _, _ in self.fresh)
            print(f"   {group}: {', '.join(f'{number} {what}' for what, number in found.items())}", flush=True)
            for what in found:
                for _, where, words in [entry for entry in self.fresh if entry[0] == what][:3]:
                    print(f"      {what}: {', '.join(where)}: {words}", flush=True)
        self.fresh = []


class Site:
    """nginx, Rockpool, and one random source for all requests."""

    def __init__(self, binary, seed):
        self.chance, self.tally, self.number, self.recent, self.downloads = (
            random.Random(seed),
            Tally(),
            0,
            {},
            {"own": {}, "aria2c": {}, "alone": {}},
        )
        self.purges, self.visited, self.server = 0, set(), None
        self.nginx = Nginx(seed)
        self.files = self.nginx.files
        try:
            self.server = Front(binary, self.nginx)
            self.authority = f"{self.server.scratch}/state/ca/ca.pem"
            self.context = trusting(self.authority)
        except BaseException:
            self.close()
            raise

    def close(self):
        self.nginx.close()

    # MARK: requests

    def door(self, name, kind):
        """The route, and the location at the origin."""
        listener = {"TLS upstream": "tls", "HTTP/2 upstream": "h2"}.get(kind)
        way = kind if listener is None else self.chance.choice(WAYS)
        return self.open(name, listener or ("plain" if name != "tunnel" else self.chance.choice(("tls", "h2")))), way

    def open(self, name, listener):
        port, place = self.server.proxy, self.nginx.origin(listener).partition("://")[2]
        if name == "gateway":
            port = self.server.gateways[listener]
        return Door(name, listener, port, place if name == "tunnel" else "", self.nginx.origin(listener) if name == "proxy" else "", place)

    def fresh(self, size, way):
        """A file, and a target of it that has not been requested before."""
        self.number += 1
        name = self.files.pick(size, self.chance)
        return name, f"/{way}/{name}?{self.number}"

    def pick(self, listener, way, size):
        """A fresh target, or a recent one: stored, partially stored, or being fetched."""
        known = self.recent.setdefault((listener, way, size), collections.deque(maxlen=4))
        if not known or self.chance.random() < 0.5:
            known.append(self.fresh(size, way))
        return self.chance.choice((*known, known[-1]))

    async def purge(self):
        """Purges the stored responses of one way or of one listener."""
        listener, way = self.chance.choice(LISTENERS), self.chance.choice(("", *(f"{way}/" for way in WAYS)))
        # A dead server is reported at the end.
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            await asyncio.to_thread(self.server.call, "DELETE", f"/v1/cache?prefix={self.nginx.origin(listener)}/{way}")
        self.purges += 1

    async def weather(self):
        while True:
            await asyncio.sleep(self.chance.uniform(1, 4))
            await self.purge()

    # MARK: responses

    async def compare(self, client, door, target, manner, where):
        """Sends one request and checks the response; `target` is (the file's name, its path)."""
        name, path = target
        try:
            status, _, body, whole = await client.get(door, path, manner, GZIP if path.startswith("/gzip/") else "")
        except Short as reason:
            self.tally.bodies[where[1]] += 1
            self.tally.add("short", where, f"{path} by {door.listener}: {reason}")
            return
        self.judge(where, f"{path} by {door.listener}", name, status, body, whole)

    def judge(self, where, path, name, status, body, whole=True):
        self.tally.bodies[where[1]] += whole
        self.tally.parts += not whole
        if status != 200:
            self.tally.add("of another status", where, f"{path}: {status} {bytes(body[:250])}")
        elif fault := self.files.fault(name, body, whole):
            self.tally.add(fault[0], where, f"{path}: {fault[1]}")

    def ratio(self, which):
        """Bytes sent by the origin for downloads in ranges, divided by the size of the files."""
        asked, sent = self.downloads[which], self.nginx.sent()
        return sum(sent[path] for path in asked) / sum(asked.values()) if asked else 0.0

    def read(self, path):
        """The output of a program."""
        return Path(path).read_bytes() if Path(path).exists() else b""
