"""Mutated requests to the live socket."""

import asyncio
import json
import os
import random
from pathlib import Path

from origin import fetch, origin
from result import Result
from server import Server, free_port

CASES = Path(__file__).resolve().parents[1] / "raw-http/cases.json"


def mutated(seeds, chance):
    text = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        if not text:
            break
        at = chance.randrange(len(text))
        kind = chance.randrange(5)
        if kind == 0:
            text[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            text[at] = chance.randrange(256)
        elif kind == 2:
            del text[at : at + chance.choice((1, 2, 8))]
        elif kind == 3:
            text[at:at] = chance.choice((b"\r\n", b"\0", b"\r", b"\n", b" ", b"0", b"\xff", b"chunked", b":", b"%00"))
        else:
            text[at:at] = text[at : at + chance.choice((2, 16, 64))]
    return bytes(text)


async def flips(options):
    """FLIPS mutated requests, from FLIPS_FROM, to the live socket: the server survives, no response is wrong, memory does not grow."""
    port = free_port()
    await origin(port)
    server = Server(options.binary, port, timeouts="head: 1s, body: 1s, idle: 1s")
    names = {"{{T}}": "", "{{ORIGIN}}": f"127.0.0.1:{port}", "{{PROXY}}": "localhost", "{{ADMIN}}": "localhost", "{{PROXYNAME}}": "x"}
    seeds = []
    for case in json.loads(CASES.read_text()):
        text = case["raw"]
        if case["kind"] != "request" or len(text) > 2000 or "*" in text and "{{" in text.replace("{{T}}", "").replace("{{ORIGIN}}", ""):
            continue
        for name, value in names.items():
            text = text.replace(name, value)
        if "{{" not in text:
            seeds.append(text.encode("latin-1"))
    first, count = int(os.environ.get("FLIPS_FROM", 1)), int(os.environ.get("FLIPS", 100_000))
    wrong, sent, marks = 0, 0, []

    async def one(number):
        # Each request has a seed of its own, so that any part of a run can be repeated.
        text = mutated(seeds, random.Random(number))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.gateway)
            writer.write(text)
            writer.write_eof()
            await asyncio.wait_for(reader.read(4096), 3)
            writer.close()
        except (TimeoutError, OSError):
            pass

    while sent < count and server.alive:
        await asyncio.gather(*(one(first + sent + number) for number in range(64)))
        sent += 64
        if sent % 2048 == 0:
            status, body, _ = await fetch(server.gateway, f"/echo/{sent}")
            wrong += body != f"/echo/{sent}".encode()
            marks.append((server.memory(), server.open_files()))
    alive = server.alive
    await asyncio.sleep(2.5)
    fds = server.open_files() if alive else 0
    early, late = marks[len(marks) // 4] if marks else (0, 0), marks[-1] if marks else (0, 0)
    status = server.stop()
    met = alive and status == 0 and wrong == 0 and late[0] < early[0] * 1.25 + 8
    return Result(
        f"R4: {sent:,} mutated requests of {len(seeds)} samples (FLIPS)",
        "lives, 0 wrong answers, memory after a quarter → at the end < +25 %",
        f"{wrong} wrong answers, {early[0]:.0f} → {late[0]:.0f} MB, {fds} descriptors after",
        met,
    )
