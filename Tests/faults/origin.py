"""An origin that responds by path, and a client that measures seconds."""

import asyncio
import random
import re
import time


class Origin:
    """Keeps its connections, reads complete requests, and sends the response that `answer` returns."""

    def __init__(self):
        self.server, self.writers = None, set()

    async def open(self, port=None, sock=None):
        place = {"sock": sock} if sock else {"host": "127.0.0.1", "port": port}
        self.server = await asyncio.start_server(self.serve, **place)

    async def close(self):
        self.server.close()
        for writer in list(self.writers):
            writer.transport.abort()

    async def serve(self, reader, writer):
        self.writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"(?im)^content-length: (\d+)", head)
                body = await reader.readexactly(int(length.group(1))) if length else b""
                writer.write(await self.answer(*head.split(" ")[:2], head, body))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()


def pattern(target, size=2_000_000):
    """Bytes unique to a path, without repetition."""
    return random.Random(target).randbytes(size)


def whole(target, head):
    """A large fresh response with a strong tag, or the requested range of it."""
    body, asked = pattern(target), re.search(r"(?im)^range: bytes=(\d+)-(\d*)", head)
    place = ""
    if asked:
        first, last = int(asked.group(1)), int(asked.group(2) or len(body) - 1)
        place, body = f"Content-Range: bytes {first}-{last}/{len(body)}\r\n", body[first : last + 1]
    status = "206 Partial Content" if asked else "200 OK"
    return (
        f'HTTP/1.1 {status}\r\nCache-Control: max-age=3600\r\nETag: "{target}"\r\nContent-Length: {len(body)}\r\n{place}\r\n'
    ).encode() + body


async def origin(port, hang_at=None):
    """Serves /hit (fresh for an hour), /big (16 MB), /whole/N (2 MB unique to N, with ranges), /echo/X (X, not stored); with `hang_at`,
    /hang/N stops after N bytes."""

    async def serve(reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                target = head.split(" ")[1]
                length = re.search(r"(?im)^content-length: (\d+)", head)
                if length:
                    await reader.readexactly(int(length.group(1)))
                if target == "/big":
                    writer.write(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 16777216\r\n\r\n")
                    for _ in range(256):
                        writer.write(bytes(65536))
                        await writer.drain()
                elif target.startswith("/whole/"):
                    writer.write(whole(target, head))
                elif target.startswith("/hang/"):
                    writer.write(hang_at[: int(target.split("/")[2])])
                    await writer.drain()
                    await asyncio.sleep(30)
                    return
                else:
                    body = target.encode()
                    control = b"max-age=3600" if target.startswith("/hit") else b"no-store"
                    writer.write(b"HTTP/1.1 200 OK\r\nCache-Control: %s\r\nContent-Length: %d\r\n\r\n%s" % (control, len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", port, backlog=4096)


async def exchange(port, method, path, fields="", body=b"", within=5.0, host="127.0.0.1"):
    """(status, fields, body or None if truncated, seconds); status 0 if no response arrived in time."""
    begun = time.monotonic()

    async def talk():
        reader, writer = await asyncio.open_connection(host, port)
        try:
            length = f"Content-Length: {len(body)}\r\n" if body or method not in ("GET", "HEAD", "DELETE") else ""
            writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}{fields}\r\n".encode() + body)
            return await reader.read(-1)
        finally:
            writer.close()

    status, named, received = 0, {}, None
    try:
        data = await asyncio.wait_for(talk(), within)
        head, _, rest = data.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 "):
            status = int(head.split(b" ")[1])
            named = dict((n.lower(), v) for n, _, v in (line.partition(": ") for line in head.decode("latin-1").split("\r\n")[1:]))
            length = named.get("content-length")
            received = (
                unchunked(rest)
                if "chunked" in named.get("transfer-encoding", "")
                else rest
                if length is not None and len(rest) == int(length) or status in (204, 304)
                else None
            )
    except (TimeoutError, OSError):
        pass
    return status, named, received, time.monotonic() - begun


def unchunked(data):
    """The decoded body, or None if it is truncated."""
    whole = b""
    while line := re.match(rb"([0-9a-fA-F]+)[^\r]*\r\n", data):
        size = int(line[1], 16)
        if size == 0:
            return whole
        whole, data = whole + data[line.end() : line.end() + size], data[line.end() + size + 2 :]
    return None


async def fetch(port, path, within=5.0):
    """(status, body or None if truncated, seconds)."""
    status, _, body, seconds = await exchange(port, "GET", path, within=within)
    return status, body, seconds


async def eventually(holds, within, every=0.05):
    """The seconds until `holds()` is true, or None."""
    begun = time.monotonic()
    while time.monotonic() - begun < within:
        if holds():
            return time.monotonic() - begun
        await asyncio.sleep(every)
    return None


async def percentiles(port, count=400, path="/hit"):
    """The median and the 99th percentile of an ordinary client's responses in milliseconds, and the number of wrong ones."""
    results = [await fetch(port, path) for _ in range(count)]
    times = sorted(seconds * 1000 for _, _, seconds in results)
    return times[len(times) // 2], times[int(len(times) * 0.99)], sum(body != path.encode() for _, body, _ in results)
