"""The streams a client can hold open through Rockpool, and the time each of them ended."""

import asyncio
import contextlib
import time

UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"


class Stream:
    """One connection to Rockpool. Received bytes are counted; a talking stream sends twenty bytes every 50 ms."""

    def __init__(self, name, port, head, talks=False):
        self.name, self.port, self.head, self.talks = name, port, head, talks
        self.status, self.came, self.sent, self.ended, self.last, self.tasks = 0, 0, 0, None, 0.0, []

    async def open(self, tunnel=""):
        """Opens the stream; returns its status, for a tunnel the one of CONNECT or of the request inside."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        if tunnel and await self.ask(f"CONNECT {tunnel} HTTP/1.1\r\nHost: {tunnel}\r\n\r\n") != 200:
            return self.status
        status = await self.ask(self.head)
        if status in (101, 200):
            self.tasks = [asyncio.create_task(self.listen()), *([asyncio.create_task(self.talk())] if self.talks else [])]
        return status

    async def ask(self, head):
        self.status = 0
        with contextlib.suppress(asyncio.IncompleteReadError, OSError, TimeoutError):
            self.writer.write(head.encode())
            async with asyncio.timeout(8):
                self.status = int((await self.reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
        return self.status

    async def listen(self):
        with contextlib.suppress(OSError):
            while piece := await self.reader.read(1 << 16):
                self.came, self.last = self.came + len(piece), time.time()
        self.ended = time.time()

    async def talk(self):
        with contextlib.suppress(OSError):
            while self.ended is None:
                self.writer.write(b"twenty bytes of talk")
                await self.writer.drain()
                self.sent += 20
                await asyncio.sleep(0.05)

    async def close(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        with contextlib.suppress(AttributeError, OSError):
            self.writer.transport.abort()


def get(place, target, base="", fields=""):
    return f"GET {base}{target} HTTP/1.1\r\nHost: {place}\r\n{fields}\r\n"


def all_of(server, name, shore):
    """(stream, target of a preceding CONNECT): every kind of stream to one declared upstream."""
    port, place, base = server.gateways[name], shore.place, f"http://{shore.place}"
    return [
        (Stream(f"a tunnel to {name}", server.proxy, get(place, "/talk", fields=UPGRADE), True), place),
        (Stream(f"a WebSocket to {name} by the gateway", port, get("localhost", "/talk", fields=UPGRADE), True), ""),
        (Stream(f"a WebSocket to {name} by the proxy", server.proxy, get(place, "/talk", base, UPGRADE), True), ""),
        (Stream(f"a download from {name}", port, get("localhost", "/download")), ""),
        (Stream(f"events from {name}", port, get("localhost", "/events")), ""),
    ]


async def opened(streams):
    """Opens all streams; returns messages about those that failed or received nothing."""
    await asyncio.gather(*(stream.open(tunnel) for stream, tunnel in streams))
    await asyncio.sleep(2)
    return [
        f"{stream.name} was not open: {stream.status}, {stream.came} bytes came"
        for stream, _ in streams
        if stream.status not in (101, 200) or not stream.came or stream.talks and not stream.sent or stream.ended
    ]


def ended(streams, switched, within=1.0):
    """Messages about the streams that continued after the switch."""
    return [
        f"{stream.name}: "
        + ("still open" if stream.ended is None else f"ended after {stream.ended - switched:.1f} s")
        + f", its last bytes came {max(0.0, stream.last - switched):.1f} s after the switch"
        for stream, _ in streams
        if stream.ended is None or stream.ended - switched > within
    ]
