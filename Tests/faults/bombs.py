"""Messages that are far larger than they appear, from clients and from upstreams."""

import asyncio
import time
import zlib

from origin import exchange
from result import Result
from server import Server, free_port

LIMIT = 32
GREAT = 10_000_000_000


def gzip_bomb(megabytes):
    """A gzip stream that unpacks to that many MB of zeros; the checksum at its end is missing."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(10_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + block * (megabytes // 10) + b"\x03\x00"


async def endless(writer, piece, seconds=4):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        writer.write(piece)
        await writer.drain()


class Bomber:
    """An upstream that responds with bombs, by path."""

    def __init__(self, bomb):
        self.bomb = bomb

    async def serve(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            path, start = head.split(" ")[1].split("?")[0], b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
            json = b"Content-Type: application/json\r\n"
            match path:
                case "/fields":
                    writer.write(start)
                    for n in range(1000):
                        writer.write(b"".join(b"X-%d-%d: y\r\n" % (n, m) for m in range(1000)))
                        await writer.drain()
                    writer.write(b"Content-Length: 2\r\n\r\nok")
                case "/chunk":
                    writer.write(start + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n")
                    await endless(writer, bytes(65536), 2)
                case "/length":
                    writer.write(start + b"Content-Length: %d\r\n\r\n" % GREAT)
                    await endless(writer, bytes(65536))
                case "/endless":
                    writer.write(start + b"Transfer-Encoding: chunked\r\n\r\n")
                    await endless(writer, b"10000\r\n" + bytes(65536) + b"\r\n")
                case "/head":
                    await endless(writer, b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 65536)
                case "/informational":
                    await endless(writer, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100)
                case "/trailers":
                    writer.write(start + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n")
                    await endless(writer, b"X-T: t\r\n" * 1000, 2)
                case _:
                    writer.write(
                        start
                        + json
                        + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(self.bomb)
                        + (b"" if head.startswith("HEAD") else self.bomb)
                    )
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def throw(port, head, pieces, seconds=4):
    """Sends a request from a client that never stops sending; returns the status, if any."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def send():
        writer.write(head)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    sending = asyncio.create_task(send())
    try:
        data = await asyncio.wait_for(reader.read(200), seconds)
    except (TimeoutError, OSError):
        data = b""
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    writer.transport.abort()
    return data[9:12].decode() or "closed"


async def drained(port, path):
    """Reads a response as fast as it arrives and discards it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    first = b""
    try:
        async with asyncio.timeout(6):
            first = await reader.read(200)
            while await reader.read(1 << 20):
                pass
    except (TimeoutError, OSError):
        pass
    writer.transport.abort()
    return first[9:12].decode() or "closed"


async def bombs(options):
    """Gzip bombs, a million fields, a chunk of 2⁶⁴−1 bytes, 10 GB announced, endless bodies and heads: memory use stays bounded."""
    bomb, port = gzip_bomb(10_000), free_port()
    listener = await asyncio.start_server(Bomber(bomb).serve, "127.0.0.1", port, limit=1 << 20)
    server = Server(
        options.binary,
        port,
        storage="memory_limit: 8 MB",
        policy="offline-first",
        patience="connect: 1s, first_byte: 3s, idle: 2s",
        upstream='resources: [{ collection: /v1/notes, item: "/v1/notes/{id}", offline_response: optimistic }]',
    )
    for _ in range(300):
        await exchange(server.gateway, "GET", "/warm", within=10)
    gateway, post = server.gateway, b"POST /v1/notes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n\r\n"
    field = b"".join(b"X-%d: y\r\n" % n for n in range(1000))
    rows = {
        "gzip of 10 GB stored": lambda: drained(gateway, "/v1/notes/1"),
        "… and looked at": lambda: look(server),
        "10⁶ fields down": lambda: drained(gateway, "/fields"),
        "2⁶⁴−1 chunk down": lambda: drained(gateway, "/chunk"),
        "10 GB down": lambda: drained(gateway, "/length"),
        "endless down": lambda: drained(gateway, "/endless"),
        "endless head down": lambda: drained(gateway, "/head"),
        "endless 103 down": lambda: drained(gateway, "/informational"),
        "endless trailers down": lambda: drained(gateway, "/trailers"),
        "10⁶ fields up": lambda: throw(gateway, b"GET /a HTTP/1.1\r\nHost: localhost\r\n", (field for _ in range(1000))),
        "endless target": lambda: throw(gateway, b"GET /", (b"a" * 65536 for _ in range(10_000))),
        "2⁶⁴−1 chunk up": lambda: throw(gateway, post + chunked + b"ffffffffffffffff\r\n", (bytes(65536) for _ in range(2000))),
        "10 GB up": lambda: throw(gateway, post + b"Content-Length: %d\r\n\r\n" % GREAT, (bytes(65536) for _ in range(10_000))),
        "endless up": lambda: throw(gateway, post + chunked, (b"10000\r\n" + bytes(65536) + b"\r\n" for _ in range(10_000))),
        "9 MB gzip queued": lambda: queued(server, "PUT", bomb[:9_000_000]),
        "… a patch of it queued": lambda: queued(server, "PATCH", b'{"a": 1}'),
        "… and read folded": lambda: queued(server, "GET", b""),
    }
    found = {}
    for name, bang in rows.items():
        server.forget_peak()
        before = server.memory()
        answer = await bang()
        if not server.alive:
            found[name] = (9999, answer)
            break
        found[name] = (server.memory("VmHWM") - before, answer)
        print(f"   {name}: +{found[name][0]:.1f} MB, {answer}", flush=True)
    alive = server.alive and (await exchange(gateway, "GET", "/warm"))[0] == 200
    most = max(found, key=lambda name: found[name][0])
    over = [f"{name} +{grown:.0f} MB" for name, (grown, _) in found.items() if grown >= LIMIT]
    met = alive and not over and len(found) == len(rows) and server.stop() == 0
    listener.close()
    return Result(
        f"S5: {len(rows)} bombs from clients and upstreams ({len(bomb) / 1e6:.0f} MB that unpack to 10 GB)",
        f"memory < +{LIMIT} MB, lives",
        f"most +{found[most][0]:.0f} MB ({most}); {'over: ' + ', '.join(over) if over else 'none over'}; alive: {alive}",
        met,
    )


async def look(server):
    """Reads the admin API's view of the entry."""
    items = server.call("GET", "/v1/cache?limit=100")["items"]
    url = next((item["url"] for item in items if item["url"].endswith("/v1/notes/1")), None)
    return "not stored" if url is None else str(len(str(server.call("GET", f"/v1/cache/explain?url={url}"))))


async def queued(server, method, body):
    """Queues a change of an entity with a bomb as its stored representation, or a bomb as a change, and reads the result."""
    server.network("offline")
    kind = "application/merge-patch+json\r\n" if method == "PATCH" else "application/json\r\nContent-Encoding: gzip\r\n"
    return str((await exchange(server.gateway, method, "/v1/notes/1", f"Content-Type: {kind}", body, within=10))[0])
