"""A hand-written HTTP/2 client in a decrypted tunnel, with control over its windows and its reading (RFC 9113 §4, §6)."""

import asyncio
import contextlib
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
ACK, END_STREAM, END_HEADERS = 1, 1, 4
INITIAL_WINDOW = 4


def frame(kind, payload=b"", flags=0, stream=0):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def fields(*pairs):
    """A field block of literals without indexing (RFC 7541 §6.2.2)."""
    return b"".join(
        b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value
        for name, value in ((name.encode(), value.encode()) for name, value in pairs)
    )


def opening(stream_window, connection_window):
    """The client's connection preface: the window of every stream, and of the whole connection, in bytes."""
    more = connection_window - 65_535
    return (
        PREFACE
        + frame(SETTINGS, struct.pack(">HI", INITIAL_WINDOW, stream_window))
        + (frame(WINDOW, struct.pack(">I", more)) if more > 0 else b"")
    )


class Frames:
    """One connection to `host` (HOST:PORT) through the proxy."""

    def __init__(self, host):
        self.host, self.reader, self.writer = host, None, None
        # Body bytes per stream, streams with a response head, ended streams, True if the connection ended, and its error code.
        self.bytes, self.begun, self.over, self.ended, self.code = {}, set(), set(), False, None
        self.reading = None

    async def open(self, proxy, authority, stream_window=65_535, connection_window=65_535):
        context = ssl.create_default_context(cafile=authority)
        context.set_alpn_protocols(["h2"])
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", proxy, limit=1 << 18)
        self.writer.write(f"CONNECT {self.host} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
        await self.reader.readuntil(b"\r\n\r\n")
        await self.writer.start_tls(context, server_hostname=self.host.split(":")[0])
        if self.writer.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            raise ConnectionError("no HTTP/2")
        self.writer.write(opening(stream_window, connection_window))
        self.reading = asyncio.create_task(self.read())

    def ask(self, stream, path):
        head = fields((":method", "GET"), (":scheme", "https"), (":authority", self.host), (":path", path))
        self.writer.write(frame(HEADERS, head, END_STREAM | END_HEADERS, stream))

    def grant(self, stream, count):
        """Grants `count` more bytes of window to one stream, or (0) to the connection."""
        self.writer.write(frame(WINDOW, struct.pack(">I", count), stream=stream))

    async def read(self):
        """Reads frames as they arrive, and acknowledges those that require it."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await self.reader.readexactly(9)
                size, kind, flags, stream = int.from_bytes(head[:3]), head[3], head[4], int.from_bytes(head[5:]) & 0x7FFF_FFFF
                payload = await self.reader.readexactly(size)
                if kind == HEADERS:
                    self.begun.add(stream)
                if kind == DATA:
                    self.bytes[stream] = self.bytes.get(stream, 0) + size
                if kind == RESET or kind in (DATA, HEADERS) and flags & END_STREAM:
                    self.over.add(stream)
                if kind == GOAWAY:
                    self.code = int.from_bytes(payload[4:8])
                if kind in (SETTINGS, PING) and not flags & ACK:
                    self.writer.write(frame(kind, payload if kind == PING else b"", ACK))
        self.ended = True

    def pause(self):
        """Stops reading, also from the socket."""
        self.reading.cancel()
        self.writer.transport.pause_reading()

    def close(self):
        if self.reading:
            self.reading.cancel()
        if self.writer:
            self.writer.transport.abort()
