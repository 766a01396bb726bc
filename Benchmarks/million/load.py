"""The child processes of a run: the origin, the storing clients and the probing clients; and the entries they share.

    load.py origin PORT | fill PORT FIRST COUNT CONNECTIONS SECONDS |
    probe PORT RATE SECONDS FIRST COUNT NAME FILE | warc AUTHORITY FIRST COUNT

Entry n has a distinct body: 1 % are 100 KB, 5 % are 20 KB, the others 0.7 to 1.4 KB; JSON with a low compression ratio.
"""

import asyncio
import base64
import email.utils
import hashlib
import json
import random
import re
import socket
import sys
import time

PER_HUNDRED = {0: 100 * 1024, **{n: 20 * 1024 for n in (10, 30, 50, 70, 90)}}
TEXT = base64.b64encode(random.Random(7625).randbytes(900_000)).decode()
HEAD = 'Content-Type: application/json\r\nCache-Control: public, max-age=604800\r\nETag: "e{0}"\r\nContent-Length: {1}\r\n'


def body(n):
    size = PER_HUNDRED.get(n % 100) or 700 + n * 7919 % 700
    start = n * 7919 % 1_000_000
    head = f'{{"id":{n},"title":"Entry {n}","text":"'
    return f'{head}{TEXT[start : start + size - len(head) - 2]}"}}'.encode()


def response(n):
    content = body(n)
    # Squid treats a response without a Date as expired.
    date = f"Date: {email.utils.formatdate(usegmt=True)}\r\n".encode()
    return b"HTTP/1.1 200 OK\r\n" + date + HEAD.format(n, len(content)).encode() + b"\r\n" + content


class Origin(asyncio.Protocol):
    """Answers /e/N with entry N, everything else with an empty 200 that must not be stored."""

    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        *heads, self.rest = (self.rest + data).split(b"\r\n\r\n")
        for head in heads:
            path = head.split(b" ", 2)[1]
            self.transport.write(
                response(int(path[3:]))
                if path.startswith(b"/e/")
                else b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n"
            )


async def origin(port):
    server = await asyncio.get_running_loop().create_server(Origin, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


class Storing(asyncio.Protocol):
    """One of many connections: requests the next entry as soon as the previous one has arrived, and checks its body."""

    def __init__(self, numbers, port, ended):
        self.numbers, self.port, self.ended, self.buffer, self.done = numbers, port, ended, bytearray(), 0

    def connection_made(self, transport):
        self.transport = transport
        self.ask()

    def ask(self):
        self.number = next(self.numbers, None)
        if self.number is None:
            self.transport.close()
            return
        self.needed = None
        self.transport.write(f"GET /e/{self.number} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAccept: application/json\r\n\r\n".encode())

    def data_received(self, data):
        self.buffer += data
        if self.needed is None:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.buffer[:end])
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if not head.startswith(b"HTTP/1.1 200") or not length:
                self.fail(f"entry {self.number}: {head[:300]!r}")
                return
            self.start, self.needed = end + 4, end + 4 + int(length[1])
        if len(self.buffer) >= self.needed:
            if not self.buffer[self.start : self.start + 20].startswith(b'{"id":%d,' % self.number):
                self.fail(f"entry {self.number} has another's body")
                return
            self.buffer.clear()
            self.done += 1
            self.ask()

    def fail(self, why):
        if not self.ended.done():
            self.ended.set_exception(RuntimeError(why))
        self.transport.abort()

    def connection_lost(self, error):
        if self.number is not None:
            self.fail(f"connection lost at entry {self.number}: {error}")
        elif not self.ended.done():
            self.ended.set_result(self.done)


async def fill(port, first, count, connections, seconds):
    """Prints the number of stored entries and the seconds used; stops early when the time is up."""
    loop, began = asyncio.get_running_loop(), time.monotonic()

    def numbers():
        for n in range(first, first + count):
            if time.monotonic() > began + seconds:
                return
            yield n

    shared = numbers()
    ends = []
    for _ in range(connections):
        ends.append(loop.create_future())
        await loop.create_connection(lambda: Storing(shared, port, ends[-1]), "127.0.0.1", port)
    done = sum(await asyncio.gather(*ends))
    print(json.dumps({"stored": done, "seconds": time.monotonic() - began}), flush=True)


def get(connection, port, n):
    """Returns the head of the response for entry n after checking its body."""
    connection.sendall(f"GET /e/{n} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n".encode())
    data = b""
    while (end := data.find(b"\r\n\r\n")) < 0:
        data += receive(connection)
    head = data[:end].decode("latin-1")
    length = re.search(r"(?i)content-length: (\d+)", head)
    if not head.startswith("HTTP/1.1 200") or not length:
        raise RuntimeError(f"entry {n}: {head[:300]}")
    parts, missing = [data[end + 4 :]], int(length[1]) - (len(data) - end - 4)
    while missing > 0:
        parts.append(receive(connection))
        missing -= len(parts[-1])
    if b"".join(parts) != body(n):
        raise RuntimeError(f"entry {n} has not its body")
    return head


def receive(connection):
    data = connection.recv(262_144)
    if not data:
        raise RuntimeError("the connection was closed")
    return data


def is_hit(head):
    return bool(re.search(r"(?im)^(cache-status: .*; ?hit|x-cache: hit)", head))


def connect(port, seconds=30):
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=30)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)


def probe(port, rate, seconds, first, count, name, path):
    """Sends requests on one connection at a fixed rate; writes for each its due time, the delay of the response (ms), and 1 for a hit.

    `hot` requests few entries repeatedly, `cold` any of very many.
    """
    connection = connect(port)
    chosen = random.Random(f"{name} {time.monotonic()}")
    if name == "hot":
        for n in range(first, first + count):
            get(connection, port, n)
    with open(path, "w", buffering=1) as out:
        due, end = time.monotonic(), time.monotonic() + seconds
        while due < end:
            pause = due - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            begun = time.monotonic() if pause > 0 else due
            hit = is_hit(get(connection, port, chosen.randrange(first, first + count)))
            out.write(f"{begun:.6f} {(time.monotonic() - begun) * 1000:.4f} {int(hit)}\n")
            due += 1 / rate


def warc(authority, first, count):
    """Writes a bundle of the entries to stdout (ISO 28500:2017), as input of `rockpool cache import -`."""
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1))
    for n in range(first, first + count):
        block, content = response(n), body(n)
        digest = base64.b32encode(hashlib.sha1(content).digest()).decode()
        head = (
            f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012d}>\r\nWARC-Date: {date}\r\n"
            f"WARC-Target-URI: http://{authority}/e/{n}\r\nContent-Type: application/http; msgtype=response\r\n"
            f"WARC-Payload-Digest: sha1:{digest}\r\nContent-Length: {len(block)}\r\n\r\n"
        )
        sys.stdout.buffer.write(head.encode() + block + b"\r\n\r\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    if kind == "origin":
        asyncio.run(origin(int(rest[0])))
    elif kind == "fill":
        asyncio.run(fill(*map(int, rest)))
    elif kind == "probe":
        probe(*map(int, rest[:5]), *rest[5:])
    elif kind == "warc":
        warc(rest[0], *map(int, rest[1:]))
    else:
        sys.exit(__doc__)
