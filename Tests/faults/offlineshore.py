"""An upstream with long-lived responses: an echo after an upgrade, an event stream, a slow download with range support."""

import asyncio
import base64
import collections
import contextlib
import hashlib
import json
import re
import time

SIZE, RATE = 6_000_000, 600_000
DOWNLOAD = hashlib.shake_256(b"download").digest(SIZE)
SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Shore:
    """One address. `heard` lists the times and kinds of bytes and connections received from Rockpool."""

    def __init__(self, host, port):
        self.host, self.port, self.heard, self.ranges, self.effects = host, port, [], [], collections.Counter()
        self.server, self.writers = None, set()

    @property
    def place(self):
        return f"{self.host}:{self.port}"

    async def open(self):
        self.server = await asyncio.start_server(self.serve, self.host, self.port)

    async def close(self):
        self.server.close()
        for writer in list(self.writers):
            writer.transport.abort()

    def since(self, moment):
        """Everything received after that time."""
        return [what for when, what in self.heard if when > moment]

    def note(self, what):
        self.heard.append((time.time(), what))

    async def serve(self, reader, writer):
        self.writers.add(writer)
        self.note("a connection")
        with contextlib.suppress(asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, target = head.split(" ")[:2]
                self.note(f"{method} {target}")
                length = re.search(r"(?im)^content-length: (\d+)", head)
                body = await reader.readexactly(int(length[1])) if length else b""
                if "upgrade: websocket" in head.lower():
                    await self.echo(reader, writer, head)
                    break
                if target.startswith("/events"):
                    await self.events(writer)
                elif target.startswith("/download"):
                    await self.download(writer, head)
                else:
                    writer.write(self.answer(method, target, body))
                await writer.drain()
        self.writers.discard(writer)
        writer.close()

    async def echo(self, reader, writer, head):
        key = re.search(r"(?im)^sec-websocket-key: (\S+)", head)[1].encode()
        accept = base64.b64encode(hashlib.sha1(key + SALT).digest()).decode()
        writer.write(
            f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        while piece := await reader.read(4096):
            self.note(f"{len(piece)} bytes of an open stream")
            writer.write(piece)
            await writer.drain()

    async def events(self, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"d\r\ndata: event\n\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)

    async def download(self, writer, head):
        found, tag = re.search(r"(?im)^range: bytes=(\d+)-(\d*)", head), '"the-download"'
        condition = re.search(r"(?im)^if-range: (.+?)\r$", head)
        start = int(found[1]) if found and (not condition or condition[1] == tag) else 0
        self.ranges.append(start)
        fields = f"ETag: {tag}\r\nCache-Control: max-age=3600\r\nAccept-Ranges: bytes\r\nContent-Length: {SIZE - start}\r\n"
        fields += f"Content-Range: bytes {start}-{SIZE - 1}/{SIZE}\r\n" if start else ""
        writer.write(f"HTTP/1.1 {'206 Partial Content' if start else '200 OK'}\r\nContent-Type: application/zip\r\n{fields}\r\n".encode())
        # A resumed download need not be slow again.
        for at in range(start, SIZE, 30_000):
            writer.write(DOWNLOAD[at : at + 30_000])
            await writer.drain()
            await asyncio.sleep(0.001 if start else 30_000 / RATE)

    def answer(self, method, target, body):
        if target == "/healthz":
            return b"HTTP/1.1 204 No Content\r\n\r\n"
        if method not in ("GET", "HEAD"):
            self.effects[json.loads(body)["line"]] += 1
        content = json.dumps([] if target.partition("?")[0] == "/v1/notes" else {"id": target.rsplit("/", 1)[-1]}).encode()
        control = "no-store" if method == "POST" else "max-age=1"
        return (
            f'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: "1"\r\nCache-Control: {control}\r\n'
            f"Content-Length: {len(content)}\r\n\r\n".encode()
            + (b"" if method == "HEAD" else content)
        )
