"""HTTP/2 clients that request large bodies and do not read them."""

import asyncio
import os
import random
import shutil
import ssl
import subprocess
import tempfile
import time

from frames import Frames
from origin import Origin, eventually, percentiles
from result import Result, Skip
from server import Server, free_port

SIZE, STREAMS = 20_000_000, 100
# The clients' behaviour: no window, 64 KiB per body and no more, or every window without reading the socket.
MANNERS = {"no window": (0, 65_535), "a first piece": (65_536, 1 << 30), "unread": (1 << 30, 1 << 30)}
PATIENCE, BACK = 10.0, 30.0


class Site(Origin):
    """`/hit`, and one body of 20 MB at `/big`; both are fresh for an hour."""

    def __init__(self):
        super().__init__()
        self.big = random.Random(20).randbytes(SIZE)

    async def answer(self, method, target, head, body):
        body = self.big if target == "/big" else target.encode()
        return b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Secured(Server):
    """A second upstream, `host`, with decrypted tunnels."""

    def __init__(self, binary, plain, secret, home):
        super().__init__(binary, plain, start=False, limits="connections: 4096", cache_limit="300 MB")
        self.host, self.authority = f"localhost:{secret}", f"{self.scratch}/state/ca/ca.pem"
        with open(f"{self.scratch}/rockpool.yaml", "a") as file:
            file.write(
                f'  - {{ name: secret, origin: "https://{self.host}", gateway: "127.0.0.1:{free_port()}", intercept: true,\n'
                f"      tls: {{ ca_file: {home}/site.pem }}, timeouts: {{ connect: 5s, first_byte: 20s, idle: 60s }} }}\n"
            )
        self.start()


async def secure(home, port):
    """The same site behind TLS."""
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            "site.key",
            "-out",
            "site.pem",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ],
        check=True,
        cwd=home,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{home}/site.pem", f"{home}/site.key")
    site = Site()
    site.server = await asyncio.start_server(site.serve, "127.0.0.1", port, ssl=context)


async def taken(server, path, size):
    """Returns True if a reading client receives all of it."""
    client = Frames(server.host)
    await client.open(server.proxy, server.authority, 1 << 30, 1 << 30)
    client.ask(1, path)
    await eventually(lambda: 1 in client.over or client.ended, 30)
    client.close()
    return client.bytes.get(1) == size


async def crowd(server, count, manner):
    """`count` connections, each with a hundred streams for the large body."""
    clients = []
    for _ in range(count):
        client = Frames(server.host)
        await client.open(server.proxy, server.authority, *MANNERS[manner])
        if manner == "unread":
            client.pause()
        for number in range(STREAMS):
            client.ask(number * 2 + 1, "/big")
        clients.append(client)
    return clients


async def sip(server):
    """A client that reads 16 KiB per second of the large body: slow, but legitimate."""
    client = Frames(server.host)
    await client.open(server.proxy, server.authority, 0, 1 << 30)
    client.ask(1, "/big")

    async def drink():
        while not client.ended:
            client.grant(1, 16_384)
            await asyncio.sleep(1)

    client.drinking = asyncio.create_task(drink())
    return client


async def stall(server, count, manner, before):
    """Measures the cost of one crowd during and after it: (MB, descriptors, an ordinary client's p99 in ms, wrong or truncated responses
    of other clients, seconds until all were closed, MB left after 30 s)."""
    slow, files, begun = await sip(server), server.open_files(), time.monotonic()
    server.forget_peak()
    clients = await crowd(server, count, manner)
    if manner != "unread":
        await eventually(lambda: all(len(client.begun) == STREAMS for client in clients), 8)
    _, during, wrong = await percentiles(server.gateway)
    held = server.open_files() - files

    def gone():
        return server.open_files() <= files + 4 if manner == "unread" else all(client.ended for client in clients)

    closed = await eventually(gone, 2.5 * PATIENCE - (time.monotonic() - begun), 0.2)
    seconds = time.monotonic() - begun if closed is not None else None
    wrong += slow.ended or slow.bytes.get(1, 0) < 16_384 * (time.monotonic() - begun - 5)
    slow.drinking.cancel()
    slow.close()
    most, ended = server.memory("VmHWM") - before, time.monotonic()
    for client in clients:
        client.close()
    await eventually(lambda: server.memory() - before < 16, BACK, 0.5)
    left, back = server.memory() - before, time.monotonic() - ended
    print(
        f"   {manner}: +{most:.0f} MB, +{held} descriptors, p99 {during:.1f} ms, {wrong} wrong, "
        f"{f'closed after {seconds:.0f} s' if seconds else 'not closed'}, {left:+.0f} MB after {back:.0f} s",
        flush=True,
    )
    return most, held, during, wrong, seconds, left


async def stalled(options):
    """STALLED (10) HTTP/2 connections of 100 streams for a cached 20 MB body: they read nothing, a little, or not even the socket."""
    if not shutil.which("openssl"):
        raise Skip("openssl")
    count, home, plain, secret = int(os.environ.get("STALLED", 10)), tempfile.mkdtemp(prefix="rpf-stalled-"), free_port(), free_port()
    try:
        site = Site()
        await site.open(plain)
        await secure(home, secret)
        server = Secured(options.binary, plain, secret, home)
        whole = [await taken(server, "/big", SIZE) for _ in range(3)]
        await percentiles(server.gateway)
        (_, usual, _), before = await percentiles(server.gateway), server.memory()
        rows = {manner: await stall(server, count, manner, before) for manner in MANNERS}
        whole.append(await taken(server, "/big", SIZE))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    most, held, during, wrong, seconds, left = (list(column) for column in zip(*rows.values(), strict=True))
    met = (
        all(whole)
        and not any(wrong)
        and max(most) <= 64
        and max(held) <= 200
        and max(during) < 2 * max(usual, 1)
        and None not in seconds
        and max(left) <= 16
        and server.stop() == 0
    )
    told = "; ".join(
        f"{manner}: +{grown:.0f} MB, +{files} descriptors, p99 {slow:.1f} ms, "
        + (f"closed after {end:.0f} s" if end else "not closed")
        + f", {rest:+.0f} MB left"
        for manner, (grown, files, slow, _, end, rest) in rows.items()
    )
    return Result(
        f"{count} HTTP/2 connections × {STREAMS} streams on a cached body of {SIZE // 1_000_000} MB that is not read",
        "memory < +64 MB, descriptors ≤ +200, an ordinary client's p99 < 2 ×, each closed once it has taken nothing for 10 s, "
        "memory back (< +16 MB) within 30 s of that, whole bodies to who reads",
        f"p99 {usual:.1f} ms before; {told}",
        met,
    )
