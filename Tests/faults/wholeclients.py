"""Clients of the integrity run: persistent connections, strict framing of bodies, and four manners of reading."""

import asyncio
import contextlib
import socket
import ssl
import zlib
from dataclasses import dataclass

from wholeorigin import SIZES

PATIENCE = 60.0
READERS = ("fast", "pausing", "slow", "leaving")
NARROW = 8192


class Short(Exception):
    """The connection ended before the body did."""


@dataclass(frozen=True)
class Door:
    """One route to a listener of the origin: the port, the CONNECT target if any, and the prefix of a path."""

    name: str
    listener: str
    port: int
    tunnel: str
    before: str
    host: str


class Wire:
    """One connection by a route; reused as long as both ends permit it."""

    opened = 0

    def __init__(self, door, context, narrow):
        self.door, self.context, self.narrow, self.reader, self.writer, self.used = door, context, narrow, None, None, 0
        self.fields, self.ended = {}, True

    async def open(self):
        connection = socket.socket()
        connection.setblocking(False)
        if self.narrow:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.door.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader, self.writer = await asyncio.open_connection(sock=connection, limit=NARROW if self.narrow else 1 << 18)
        if self.door.tunnel:
            self.writer.write(f"CONNECT {self.door.tunnel} HTTP/1.1\r\nHost: {self.door.tunnel}\r\n\r\n".encode())
            head = await self.reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise Short(f"CONNECT: {head[:40]}")
            await self.writer.start_tls(self.context, server_hostname="localhost")
        self.used, self.ended = 0, False
        Wire.opened += 1

    async def ask(self, path, fields=""):
        """Returns the status. A kept connection that is closed before the first byte of a response is reopened, as in every client."""
        request = f"GET {self.door.before}{path} HTTP/1.1\r\nHost: {self.door.host}\r\n{fields}\r\n".encode()
        for _ in range(2):
            again = self.used > 0 and not self.ended
            if self.ended or self.reader.at_eof():
                self.close()
                await self.open()
            try:
                self.writer.write(request)
                head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                break
            except (OSError, asyncio.IncompleteReadError) as error:
                self.close()
                if not again or getattr(error, "partial", b""):
                    raise Short(f"no answer: {error!r:.80}") from None
        self.used += 1
        lines = head.split("\r\n")
        self.fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        return int(lines[0].split(" ")[1])

    async def pieces(self):
        """Yields the body as it arrives; raises `Short` if it ends before its framing does."""
        try:
            if "chunked" in self.fields.get("transfer-encoding", "").lower():
                while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                    async for piece in self.counted(size):
                        yield piece
                    if await self.reader.readexactly(2) != b"\r\n":
                        raise Short("a chunk does not end with its length")
                while await self.reader.readuntil(b"\r\n") != b"\r\n":
                    pass
            elif "content-length" in self.fields:
                async for piece in self.counted(int(self.fields["content-length"])):
                    yield piece
            else:
                while piece := await self.reader.read(1 << 18):
                    yield piece
                self.close()
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            raise Short(f"{error!r:.80}") from None
        if self.fields.get("connection", "").lower() == "close":
            self.close()

    async def counted(self, size):
        while size:
            piece = await self.reader.read(min(size, 1 << 18))
            if not piece:
                raise asyncio.IncompleteReadError(b"", size)
            size -= len(piece)
            yield piece

    def close(self):
        self.ended = True
        if self.writer:
            with contextlib.suppress(OSError):
                self.writer.transport.abort()
            self.writer = None


@dataclass
class Manner:
    """The manner of reading a body: its pauses, its rate in bytes per second, and the place or time of abandoning it."""

    pauses: tuple = ()
    rate: float = 0
    leave_at: int | None = None
    leave_after: float = PATIENCE

    @classmethod
    def of(cls, reader, label, chance, seconds):
        """`seconds` is the maximum duration of a slow read."""
        size = SIZES[label][0]
        if reader == "pausing":
            return cls(pauses=tuple(sorted((chance.randrange(size), chance.uniform(0.05, 0.3)) for _ in range(chance.choice((1, 1, 2))))))
        if reader == "slow":
            return cls(rate=max(2e6, size / seconds))
        if reader == "leaving":
            return cls(leave_at=chance.choice((0, chance.randrange(size), chance.randrange(size))))
        return cls()


class Left(Exception):
    """The reader abandoned the body."""


async def read(wire, manner):
    """Reads a body; returns (bytes, True if complete)."""
    body, pauses, begun = bytearray(), list(manner.pauses), asyncio.get_running_loop().time()
    stream = wire.pieces()
    try:
        if manner.leave_at == 0:
            raise Left
        async for piece in stream:
            body += piece
            if manner.rate:
                await asyncio.sleep(begun + len(body) / manner.rate - asyncio.get_running_loop().time())
            while pauses and pauses[0][0] < len(body):
                await asyncio.sleep(pauses.pop(0)[1])
            if manner.leave_at is not None and len(body) >= manner.leave_at:
                raise Left
            if asyncio.get_running_loop().time() - begun > manner.leave_after:
                raise Left
    except Left:
        wire.close()
        return body, False
    except Short as reason:
        raise Short(f"ends after {len(body):,}: {reason}") from None
    finally:
        await stream.aclose()
    return body, True


def plain(fields, body, whole):
    """Removes a body's content coding; raises `Short` if the coding does not end with the body."""
    if fields.get("content-encoding", "") != "gzip":
        return body
    coding = zlib.decompressobj(31)
    try:
        held = coding.decompress(body)
    except zlib.error:
        return body
    if whole and (not coding.eof or coding.unused_data):
        raise Short(f"its gzip has not ended with it after {len(held):,}, {len(coding.unused_data)} bytes follow")
    return held


class Client:
    """One read after the other on the same connections."""

    def __init__(self, context):
        self.context, self.wires = context, {}

    def wire(self, door, narrow=False):
        return self.wires.setdefault((door, narrow), Wire(door, self.context, narrow))

    async def get(self, door, path, manner, fields=""):
        """(status, fields, body, True if read to its end); raises `Short`."""
        wire = self.wire(door, bool(manner.pauses or manner.rate))
        try:
            async with asyncio.timeout(PATIENCE):
                status = await wire.ask(path, fields)
                body, whole = await read(wire, manner)
                return status, wire.fields, plain(wire.fields, body, whole), whole
        except TimeoutError:
            wire.close()
            raise Short(f"no end within {PATIENCE:.0f} s") from None
        except OSError as error:
            wire.close()
            raise Short(f"no connection: {error!r:.80}") from None

    def close(self):
        for wire in self.wires.values():
            wire.close()


def trusting(file):
    context = ssl.create_default_context(cafile=file)
    context.set_alpn_protocols(["http/1.1"])
    return context
