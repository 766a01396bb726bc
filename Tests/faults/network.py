"""Networks that lose packets, flap and fall silent."""

import asyncio
import os
import re
import socket
import time
from pathlib import Path

from link import FAR, NEAR, Link
from origin import eventually, exchange, origin
from result import Result
from server import Server, free_port
from writes import QUEUE, Ledger, Writer, verdict


async def loss(options):
    """WRITES queued writes over a link that drops every second packet, in both directions."""
    count, lanes = int(os.environ.get("WRITES", 1000)), 50
    with Link() as link:
        ledger, port = Ledger(), 8080
        server = Server(options.binary, f"{FAR}:{port}", patience="connect: 15s, first_byte: 20s, idle: 20s", upstream=QUEUE)
        writer = Writer(server.gateway)
        server.network("offline")
        await writer.fill(lanes, count // lanes)
        await ledger.open(sock=link.listener(port))
        drop = "-m statistic --mode random --probability 0.5 -j DROP"
        link.near(f"iptables -A INPUT -i rp0 {drop}")
        link.away(f"iptables -A INPUT -i rp1 {drop}")
        server.network("auto")
        seconds = await eventually(lambda: sum(ledger.effects.values()) >= len(writer.acknowledged), 900, 0.5)
        settled = await eventually(lambda: not server.operations("pending,inflight,uncertain"), 120, 1)
        lost, doubled, disordered = verdict(ledger, writer)
        status = server.stop()
        await ledger.close()
    met = seconds is not None and settled is not None and lost == doubled == disordered == status == 0 and len(writer.acknowledged) == count
    return Result(
        f"N2: {count} writes on {lanes} resources through 50 % loss each way",
        "all delivered exactly once, in order for each resource",
        f"{sum(ledger.effects.values())}/{len(writer.acknowledged)} in {seconds or 900:.0f} s by {ledger.requests} requests "
        f"({ledger.repeats} repeated with the same key); {lost} lost, {doubled} doubled, {disordered} resources out of order",
        met,
    )


async def flap(options):
    """The link to the origin goes down and up every two seconds for FLAP_SECONDS, then slowly, to measure the detection time."""
    seconds = int(os.environ.get("FLAP_SECONDS", 180))
    with Link() as link:
        ledger, port = Ledger(), 8080
        await ledger.open(sock=link.listener(port))
        link.near("iptables -A OUTPUT -o rp0 -p tcp --syn")
        server = Server(options.binary, f"{FAR}:{port}", upstream=QUEUE + ", probe: { path: /healthz, interval: 1s, expect: 204 }")
        writer, over = Writer(server.gateway), False

        async def write(resource):
            number = 0
            while not over:
                await writer.write(resource, number)
                number += 1
                await asyncio.sleep(0.5)

        tasks = [asyncio.create_task(write(f"r{n}")) for n in range(5)]
        syns, end = [], time.monotonic() + seconds

        def attempts():
            return int(re.search(r"\n\s*(\d+)", link.near("iptables -L OUTPUT -v -x -n").partition("pkts")[2]).group(1))

        async def turn(state, lasting):
            link.away(f"ip link set rp1 {state}")
            begun, noticed, before = time.monotonic(), None, 0
            while time.monotonic() - begun < lasting:
                if noticed is None and (state == "up") == (server.call("GET", "/v1/network")["upstreams"][0]["reachability"] == "online"):
                    noticed, before = time.monotonic() - begun, attempts()
                await asyncio.sleep(0.1)
            if state == "down" and lasting - (noticed or lasting) > 1:
                syns.append((attempts() - before) / (lasting - noticed))
            return noticed

        while time.monotonic() < end:
            await turn("down", 2)
            await turn("up", 2)
        slow = [(await turn("down", 8), await turn("up", 8)) for _ in range(3)]
        over = True
        await asyncio.gather(*tasks)
        drained = await eventually(lambda: not server.operations("pending,inflight,uncertain"), 60, 0.5)
        lost, doubled, disordered = verdict(ledger, writer)
        status = server.stop()
        await ledger.close()
    down, up = (max((9 if turn[n] is None else turn[n]) for turn in slow) for n in (0, 1))
    met = drained is not None and lost == doubled == disordered == status == 0 and down <= 3 and up <= 3 and max(syns) <= 2
    return Result(
        f"N3: link down and up every 2 s for {seconds} s",
        "noticed ≤ 3 s, nothing lost, ≤ 2 attempts/s once noticed",
        f"noticed down after {down:.1f} s, up after {up:.1f} s at worst; {len(writer.acknowledged)} acknowledged ({writer.queued} queued): "
        f"{lost} lost, {doubled} doubled, {disordered} out of order, {len(writer.refused)} refused; "
        f"SYNs a second from then on, the kernel's own repeats included: mean {sum(syns) / len(syns):.1f}, most {max(syns):.1f}",
        met,
    )


def connections(pid, host, port):
    """The number of sockets in the process's namespace connected to that address, without orphaned ones."""
    remote = f"{int.from_bytes(socket.inet_aton(host), 'little'):08X}:{port:04X}"
    return sum(line.split()[2:4] == [remote, "01"] for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:])


LEFT = {
    "idle": b"",
    "between requests": b"GET /hit HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "half a head": b"GET /hit HTTP/1.1\r\nHost: localhost\r\nX-",
    "half a body": b"POST /echo/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf",
    "reading 16 MB": b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


async def half_open(options):
    """Clients, then upstreams, that vanish without a FIN: descriptors and memory are freed within the timeouts."""
    limits, each, found = "head: 3s, body: 3s, idle: 3s, tunnel: 5s", 20, []
    with Link() as link:
        port = free_port()
        await origin(port)
        server = Server(options.binary, port, gateway=NEAR, timeouts=limits, proxy="allow: [10.201.0.0/24]")
        own = f"{NEAR}:{server.gateway}".encode()
        base, held = server.open_files(), []
        for request in LEFT.values():
            for _ in range(each):
                held.append(link.client(server.gateway))
                held[-1].send(request.replace(b"localhost", own))
        await asyncio.sleep(1)
        during = server.open_files()
        link.silence()
        for s in held:
            s.close()
        back = await eventually(lambda: server.open_files() <= base + 8, 90, 0.25)
        found.append(("clients", base, during, server.open_files(), back, server.stop()))
    with Link() as link:
        listener = link.listener(8080)
        server = Server(options.binary, f"{FAR}:8080", timeouts=limits, proxy="connect_ports: [443, 8080]")
        taken = []

        async def vanish(reader, writer):
            taken.append(writer)
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
                return
            if b"/body" in head:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            elif b"/whole" in head:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        await asyncio.start_server(vanish, sock=listener)
        base = server.open_files()
        asks = [
            asyncio.create_task(exchange(server.gateway, "GET", f"/{kind}/{n}", within=30))
            for n in range(each)
            for kind in ("head", "body", "whole")
        ]
        tunnels = []
        for _ in range(each):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.proxy)
            writer.write(f"CONNECT {FAR}:8080 HTTP/1.1\r\nHost: {FAR}:8080\r\n\r\n".encode())
            tunnels.append(((await reader.read(100))[9:12], writer))
        await asyncio.sleep(0.3)
        link.silence()
        during, begun = server.open_files(), time.monotonic()
        answers = await asyncio.gather(*asks)
        slowest = time.monotonic() - begun
        # Idle upstream connections stay in libcurl's pool (256 at most); only the next request checks their age.
        back = await eventually(lambda: connections(server.pid, FAR, 8080) <= each and server.open_files() <= base + 8 + each, 20, 0.25)
        pooled = connections(server.pid, FAR, 8080)
        opened = sum(status == b"200" for status, _ in tunnels)
        found.append(("upstreams", base, during, server.open_files(), back, server.stop()))
        for writer in [*taken, *(writer for _, writer in tunnels)]:
            writer.transport.abort()
    wrong = [status for status, *_ in answers if status not in (200, 504)]
    met = (
        all(back is not None and back <= 10 and status == 0 for *_, back, status in found) and not wrong and slowest <= 5 and opened == each
    )
    return Result(
        f"half-open TCP: {len(LEFT) * each} clients and {4 * each} upstream connections vanish",
        "a status within 5 s, descriptors back within 10 s (limits 1–5 s), but for pooled ones and 8 files opened since",
        "; ".join(
            f"{who}: {base} descriptors, {during} during, {after} after {back or 20:.0f} s" for who, base, during, after, back, _ in found
        )
        + f" ({pooled} of them idle in the pool of upstream connections, which end a minute after the last transfer); "
        f"answers to the waiting within {slowest:.1f} s, {len(wrong)} without a status",
        met,
    )
