"""Toxiproxy's eight toxics between Rockpool and its origin, at three moments of four kinds of exchange."""

import asyncio
import hashlib
import json
import random
import socket
import struct
import time

from origin import eventually, exchange
from result import Result
from server import Server, free_port
from writes import QUEUE, Ledger

TOXICS = ("latency", "down", "bandwidth", "slow_close", "timeout", "reset_peer", "slicer", "limit_data")
MOMENTS = ("header", "body", "idle")
DEADLINE = 6.0
SIZE = 40_000


def body_of(path):
    return (hashlib.sha256(path.encode()).hexdigest() * (SIZE // 64 + 1)).encode()[:SIZE]


class Site(Ledger):
    """Bodies by path, immediately stale if the path begins with /stale; writes are counted."""

    def reply(self, method, target, head):
        tag = f'"{target}"'
        control = "no-store" if method == "POST" else "max-age=0" if target.startswith("/stale") else "max-age=600"
        if f"if-none-match: {tag}" in head.lower():
            return f"HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\nCache-Control: {control}\r\n\r\n".encode()
        return f"HTTP/1.1 200 OK\r\nETag: {tag}\r\nCache-Control: {control}\r\nContent-Length: {SIZE}\r\n\r\n".encode() + (
            b"" if method == "HEAD" else body_of(target)
        )


class FaultProxy:
    """Forwards bytes; the origin's bytes pass through `toxic`, from `offset` bytes after it was set."""

    def __init__(self, target):
        self.target, self.toxic, self.offset, self.pairs, self.server, self.port = target, None, 0, set(), None, free_port()

    async def open(self):
        self.server = await asyncio.start_server(self.pass_on, "127.0.0.1", self.port)

    async def set(self, toxic, offset):
        self.toxic, self.offset = toxic, offset
        if toxic == "down" and offset == 0:
            self.server.close()
            self.cut()

    async def heal(self):
        self.toxic = None
        self.cut()
        if not self.server.is_serving():
            await self.open()

    def cut(self):
        for writer in list(self.pairs):
            writer.transport.abort()

    async def pass_on(self, reader, writer):
        try:
            out_reader, out_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        self.pairs |= {writer, out_writer}
        await asyncio.gather(self.pump(reader, out_writer, None), self.pump(out_reader, writer, self), return_exceptions=True)
        if self.toxic == "slow_close":
            await asyncio.sleep(1)
        for end in (writer, out_writer):
            self.pairs.discard(end)
            end.close()

    async def pump(self, reader, writer, through):
        passed, toxic = 0, None
        while data := await reader.read(4096):
            if through and toxic != self.toxic:
                passed, toxic = 0, self.toxic
            if through and toxic and not await self.harm(writer, data, passed):
                return
            if not (through and toxic):
                writer.write(data)
            await writer.drain()
            passed += len(data)
        if writer.can_write_eof():
            writer.write_eof()

    async def harm(self, writer, data, passed):
        """Returns True if the connection continues."""
        clean = max(0, min(len(data), self.offset - passed))
        writer.write(data[:clean])
        data = data[clean:]
        if not data:
            return True
        match self.toxic:
            case "latency":
                await asyncio.sleep(0.2 + random.random() * 0.1 if passed <= self.offset else 0.01)
                writer.write(data)
            case "bandwidth":
                for at in range(0, len(data), 1000):
                    writer.write(data[at : at + 1000])
                    await asyncio.sleep(0.02)
            case "slicer":
                for at in range(0, len(data), 97):
                    writer.write(data[at : at + 97])
                    await asyncio.sleep(0.001)
            case "slow_close":
                writer.write(data)
            case "timeout":
                await asyncio.sleep(30)
                return False
            case "limit_data":
                writer.write(data[:20])
                writer.close()
                return False
            case "reset_peer":
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
                return False
            case "down":
                self.server.close()
                self.cut()
                return False
        return True


async def tunnel(server, port, path):
    """(status, body or None) of a GET through CONNECT."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.proxy)
    try:
        writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        status = int((await reader.readuntil(b"\r\n\r\n"))[9:12])
        if status != 200:
            return status, None
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        return status, await reader.readexactly(SIZE)
    except (asyncio.IncompleteReadError, OSError):
        return 200, None
    finally:
        writer.close()


async def one_toxic(options, toxic, bad, slowest):
    """Runs the twelve cells of a toxic in sequence on one server."""
    site, port = Site(), free_port()
    await site.open(port)
    fault = FaultProxy(port)
    await fault.open()
    server = Server(options.binary, fault.port, timeouts="head: 10s, body: 30s, idle: 60s, tunnel: 3s", upstream=QUEUE)

    async def get(path):
        status, _, body, _ = await exchange(server.gateway, "GET", path, within=DEADLINE + 4)
        return status, body

    for moment in MOMENTS:
        offset = {"header": 0, "body": 5000, "idle": 0}[moment]
        for kind in ("miss", "revalidation", "replay", "CONNECT"):
            path, cell = f"/{'stale' if kind == 'revalidation' else 'new'}/{moment}/{kind}", (toxic, moment, kind)
            if kind == "revalidation" or moment == "idle":
                await get(path if kind == "revalidation" else "/warm" + path)
            line = f"{toxic}-{moment}"
            if kind == "replay":
                server.network("offline")
                await exchange(server.gateway, "POST", "/v1/notes/1/lines", "", json.dumps({"line": line}).encode())
                await fault.set(toxic, offset)
                server.network("auto")
                await asyncio.sleep(2)
            else:
                await fault.set(toxic, offset)
                begun = time.monotonic()
                status, body = await (tunnel(server, fault.port, path) if kind == "CONNECT" else get(path))
                seconds = time.monotonic() - begun
                slowest.append((seconds, cell))
                if seconds > DEADLINE or status not in (200, 502, 504) or status == 200 and body not in (None, body_of(path)):
                    bad.append((*cell, status, f"{seconds:.1f} s"))
            await fault.heal()
            if kind == "replay":
                begun = await eventually(lambda line=line: site.effects[line], 10)
                await eventually(lambda: not server.operations("pending,inflight,uncertain"), 5)
                if begun is None or site.effects[line] != 1:
                    bad.append((*cell, f"{site.effects[line]} effects"))
            elif kind != "CONNECT":
                server.network("offline")
                stored = await get(path)
                server.network("auto")
                again = await eventually_right(get, path)
                if stored[0] == 200 and stored[1] != body_of(path) or not again:
                    bad.append((*cell, "stored", stored[0], len(stored[1] or b"")))
    if server.stop() != 0:
        bad.append((toxic, "the server's end"))
    await fault.heal()
    fault.server.close()
    await site.close()


async def eventually_right(get, path):
    for _ in range(30):
        status, body = await get(path)
        if status == 200:
            return body == body_of(path)
        await asyncio.sleep(0.2)
    return False


async def toxics(options):
    """Eight toxics × header, body, idle × a miss, a revalidation, a replay, CONNECT."""
    bad, slowest = [], []
    await asyncio.gather(*(one_toxic(options, toxic, bad, slowest) for toxic in TOXICS))
    seconds, cell = max(slowest)
    for entry in bad:
        print("  ", *entry)
    return Result(
        "N1: eight toxics × {header, body, idle} × {miss, revalidation, replay, CONNECT}",
        f"a defined status or a broken-off body within {DEADLINE:.0f} s (limits 1 s, tunnels 3 s), "
        "one effect of a write, nothing truncated stored",
        f"{len(TOXICS) * 12} cells, {len(bad)} wrong; slowest {seconds:.1f} s ({' '.join(cell)}); each read again offline and online",
        not bad,
    )
