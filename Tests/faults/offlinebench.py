"""Rockpool under strace with upstreams at separate addresses, and the requests made while it is switched off."""

import asyncio
import contextlib
import http.client
import json
import subprocess
import time
from pathlib import Path

from offlineshore import Shore
from offlinestreams import UPGRADE, Stream, all_of, get
from offlinetrace import Trace
from origin import exchange
from server import Refused, Server, free_port

RESOURCES = (
    'resources: [{ collection: /v1/notes, item: "/v1/notes/{id}", '
    'delta: { query: "updatedAfter={cursor}", cursor: /updatedAt, every: 2s } }]'
)
DECLARED = f"probe: {{ path: /healthz, interval: 1s, expect: 204 }}, idempotency: {{ honoured: yes }}, {RESOURCES}"
PATIENT = "connect: 2s, first_byte: 5s, idle: 60s"
# A name that does not exist: only DNS could answer that.
NAMED = "rockpool-offline.invalid:18080"
STORED = "/v1/items/stored"


class Switched(Server):
    """Upstreams `origin` and `other` by address, `named` by name; a fourth address is not declared."""

    def __init__(self, binary, shores, top=""):
        ports = ", ".join(str(shore.port) for shore in shores.values())
        super().__init__(
            binary,
            shores["origin"].place,
            upstream=DECLARED,
            policy="offline-first",
            start=False,
            patience=PATIENT,
            proxy=f"connect_ports: [443, 18080, {ports}]",
        )
        self.own = binary
        self.gateways = {"origin": self.gateway, "other": free_port(), "named": free_port()}
        places = {"other": shores["other"].place, "named": NAMED}
        with open(f"{self.scratch}/rockpool.yaml", "a") as file:
            file.writelines(
                f'  - {{ name: {name}, origin: "http://{place}", gateway: "127.0.0.1:{self.gateways[name]}", policy: offline-first, '
                f"timeouts: {{ {PATIENT} }}, {DECLARED} }}\n"
                for name, place in places.items()
            )
            file.write(f"{top}\n")
        self.trace = Trace(self.scratch)

    def begin(self):
        self.command = self.trace.command("serve")
        self.start()

    def say(self, words):
        """Sets the extra arguments of `serve` from now on."""
        self.binary = self.own
        if words:
            self.binary = f"{self.scratch}/rockpool"
            Path(self.binary).write_text(f'#!/bin/sh\nexec {self.own} "$@" {" ".join(words)}\n')
            Path(self.binary).chmod(0o700)

    def run(self, *words, within=20):
        """Runs one of Rockpool's commands, traced like the server."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*self.trace.command(words[0]), self.own, *words, "--config", f"{self.scratch}/rockpool.yaml"],
                capture_output=True,
                timeout=within,
            )

    def put(self, body):
        """(status, document) of `PUT /v1/network`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=20)
        token = Path(self.scratch, "state/admin-token").read_text().strip()
        try:
            connection.request(
                "PUT", "/v1/network", json.dumps(body), {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            )
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def modes(self):
        """The global mode, and the mode of each upstream."""
        document = self.call("GET", "/v1/network")
        return {"": document["mode"], **{row["name"]: row["mode"] for row in document["upstreams"]}}


class Bay:
    """One scene: upstreams, Rockpool, and the faults found."""

    def __init__(self, options, scene, top="", words=()):
        self.scene, self.found, self.lines, self.words = scene, [], [], words
        self.shores = {
            name: Shore(f"127.0.0.{number}", free_port(f"127.0.0.{number}"))
            for name, number in (("origin", 2), ("other", 3), ("undeclared", 4))
        }
        self.server = Switched(options.binary, self.shores, top)

    async def open(self):
        """Starts everything; returns False and records a fault if the server does not start."""
        for shore in self.shores.values():
            await shore.open()
        self.server.say(self.words)
        return await self.start()

    async def start(self):
        try:
            await asyncio.to_thread(self.server.begin)
        except Refused as refusal:
            self.add("does not start: " + " ".join(line.strip() for line in str(refusal).splitlines() if line.strip())[:160])
            return False
        return True

    async def close(self):
        if self.server.alive and (status := await asyncio.to_thread(self.server.stop, True)) != 0:
            self.add(f"the server's end: {status}")
        for shore in self.shores.values():
            await shore.close()
        return [f"{self.scene}: {what}" for what in self.found]

    def add(self, what):
        self.found.append(what)

    def expect(self, holds, what):
        if not holds:
            self.add(what)

    async def call(self, method, path, body=None):
        """The admin API's response, or None if it took too long."""
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            return await asyncio.to_thread(self.server.call, method, path, body)

    async def switch(self, mode, upstream=None):
        """Sets the switch; returns the time."""
        status, _ = await asyncio.to_thread(self.server.put, {"mode": mode, "upstream": upstream})
        self.expect(status == 200, f"PUT /v1/network {mode} {upstream}: {status}")
        return time.time()

    # MARK: while it is off

    async def write(self, name, line):
        fields = "Content-Type: application/json\r\n"
        status, *_ = await exchange(self.server.gateways[name], "POST", "/v1/notes", fields, json.dumps({"line": line}).encode())
        self.lines.append((name, line))
        return status

    async def reads(self, names):
        """Stored responses are served, others are refused immediately."""
        for name in names:
            port = self.server.gateways[name]
            if name != "named":
                status, *_ = await exchange(port, "GET", STORED)
                self.expect(status == 200, f"a read of {name} that is stored: {status}")
            status, *_, seconds = await exchange(port, "GET", f"/v1/items/{time.time()}")
            self.expect(status == 504 and seconds < 1, f"a read of {name} that is not stored: {status} after {seconds:.1f} s")

    async def refusals(self, places):
        """Tries new tunnels and WebSockets; `places`: (host:port, gateway's port or None) by name."""
        for name, (place, gateway) in places.items():
            tries = [
                (f"CONNECT to {name}", Stream("", self.server.proxy, get(place, "/talk", fields=UPGRADE)), place),
                (f"a WebSocket to {name} by the proxy", Stream("", self.server.proxy, get(place, "/talk", f"http://{place}", UPGRADE)), ""),
                (f"a GET of {name} by the proxy", Stream("", self.server.proxy, get(place, f"/{time.time()}", f"http://{place}")), ""),
            ]
            if gateway:
                tries.append((f"a WebSocket to {name} by the gateway", Stream("", gateway, get("localhost", "/talk", fields=UPGRADE)), ""))
            for what, stream, tunnel in tries:
                status = await stream.open(tunnel)
                await stream.close()
                self.expect(400 <= status < 600, f"{what} was answered {status}")

    async def everything(self, names, undeclared=False):
        """Triggers everything that could send a packet, one after the other, for upstreams that are off."""
        places = {name: (self.shores[name].place if name in self.shores else NAMED, self.server.gateways[name]) for name in names}
        if undeclared:
            places["undeclared"] = (self.shores["undeclared"].place, None)
        await self.reads(names)
        for name in names:
            line = f"{name}-{len(self.lines)}"
            self.expect((status := await self.write(name, line)) == 202, f"a write to {name}: {status}")
        await self.refusals(places)
        urls = [f"http://{place}/v1/items/ahead-{len(self.lines)}" for place, _ in places.values()]
        await self.call("POST", "/v1/cache/prefetch", {"urls": urls})
        await asyncio.to_thread(self.server.run, "cache", "prefetch", urls[0])
        await asyncio.to_thread(self.server.run, "doctor")
        await self.call("POST", "/v1/sync/push")
        await self.call("POST", "/v1/sync/pull")
        # Wait until probes, pulls and the next attempts are due.
        await asyncio.sleep(3)

    def silent(self, names, since, undeclared=False):
        """Checks that nothing was sent, by strace and at the upstreams."""
        places = {self.shores[name].place if name in self.shores else NAMED for name in names}
        shores = [name for name in (*names, *(["undeclared"] if undeclared else [])) if name in self.shores]
        places |= {self.shores[name].place for name in shores}
        # The name is resolved as long as its upstream is not switched off.
        for what, count in self.server.trace.forbidden(since, places, "named" in names).most_common(8):
            self.add(f"{count} × {what}")
        for name in shores:
            if heard := self.shores[name].since(since):
                self.add(f"{name} heard {len(heard)} things more, {', '.join(dict.fromkeys(heard))[:120]}")

    async def restart(self, kill, modes, waits=True):
        """Restarts the server and checks that the switch and the queued writes persist; returns True if it started."""
        waiting = {operation["id"] for operation in self.server.operations("pending,inflight,uncertain")}
        if kill:
            await asyncio.to_thread(self.server.kill)
        else:
            status = await asyncio.to_thread(self.server.stop, True)
            self.expect(status == 0, f"SIGTERM: {status}")
        how = "SIGKILL" if kill else "SIGTERM"
        if not await self.start():
            return False
        there = await asyncio.to_thread(self.server.modes)
        self.expect(all(there.get(name) == mode for name, mode in modes.items()), f"after {how} the switch stands at {there}")
        if not waits:
            return True
        await asyncio.sleep(2.5)
        gone = waiting - {operation["id"] for operation in self.server.operations("pending,inflight,uncertain")}
        self.expect(not gone, f"after {how} {len(gone)} queued writes do not wait any more")
        return True

    def streams(self, name):
        return all_of(self.server, name, self.shores[name])

    def free_tunnel(self):
        """A tunnel to the undeclared address."""
        place = self.shores["undeclared"].place
        return Stream("a tunnel to an undeclared host", self.server.proxy, get(place, "/talk", fields=UPGRADE), True), place
