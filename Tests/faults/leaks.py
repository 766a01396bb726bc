"""Secrets are planted in all traffic, then searched for in all output."""

import asyncio
import os
import re
import signal
import subprocess
from pathlib import Path

from indiscreet import RESOURCES, Indiscreet, credentials, read, write
from origin import eventually
from outputs import Watched, everything, written
from planted import Planted
from result import Result
from server import Refused, Server, free_port


async def plant(options, planted, kept, access):
    """Collects all output of one server: with its origin unreachable, with the origin in each mood, and after a crash."""
    site, port = Indiscreet(planted), free_port()
    await site.open(port)
    identity = "header:X-Tenant-Key" if "identity field" in planted else "auto"
    server = Watched(
        options.binary,
        port,
        access=access,
        credentials=credentials(planted).values(),
        policy="offline-first",
        upstream=f"identity: {identity}, queue: {{ credentials: {kept} }}, refresh: {{ path: /token, login: /login }}, {RESOURCES}",
    )
    for name in ("admin-token", "install-key", "ca/ca.key"):
        plant_file(planted, server, name, kept)
    await read(server, planted, port)
    found = []
    for turn, mood in enumerate(("good", "refuse", "auth", "conflict", "elsewhere")):
        site.mood = mood
        await site.close()
        await write(server, planted, turn)
        await read(server, planted, port)
        if turn == 0:
            found += list(everything(server))
        await site.open(port)
        before = site.taken
        await eventually(lambda before=before: site.taken > before, 5)
        await asyncio.sleep(2)
        await read(server, planted, port)
    states = {operation["state"] for operation in server.operations()}
    found += list(everything(server))
    # A fault that is sent by kill does not recur after the report: the process must still be killed.
    os.kill(server.pid, signal.SIGSEGV)
    await eventually(lambda: "Registers:" in server.log, 15)
    await asyncio.sleep(1)
    server.kill()
    found += [("crash", server.log.encode()), *written(server)]
    server.start()
    found += list(everything(server))
    status = server.stop(keep=True)
    found += [("log", server.log.encode()), ("access log", bytes(server.said)), *written(server)]
    await site.close()
    return found, states, status


def plant_file(planted, server, name, kept):
    """Registers a secret of the server's own: only the file that contains it may contain it."""
    path = Path(server.scratch, "state", name)
    if not path.exists():
        subprocess.run([server.binary, "ca", "init", "--config", f"{server.scratch}/rockpool.yaml"], capture_output=True)
    data = path.read_bytes()
    text = data.decode("latin-1").strip()
    # For a key the longest line, from the middle of its base64.
    planted.add(f"{name} ({kept})", max(text.split("\n"), key=len) if name.endswith(".key") else text, f"file state/{name}$")


def parent(options, planted):
    """All output about a parent proxy with a password, whether the configuration is accepted or refused."""
    via = f'via: "http://user:{planted["password of a parent"].value}@127.0.0.1:9"'
    try:
        server = Watched(options.binary, 9, upstream=via)
        said = list(everything(server))
        server.stop(keep=True)
        return said
    except Refused as refusal:
        server = Server.made[-1]
        said = [("log", server.log.encode() + str(refusal).encode())]
        for command in (["config", "check"], ["config", "show"], ["doctor"], ["status"]):
            done = subprocess.run([options.binary, *command, "--config", f"{server.scratch}/rockpool.yaml"], capture_output=True)
            said.append((f"cli {' '.join(command)}", done.stdout + done.stderr))
        return said


async def secrets(options):
    """Credentials, tokens, passwords and keys in all traffic: none in logs, documents, metrics, exports, events, files, crashes."""
    wrong, allowed, count, size, kinds, states, number = {}, 0, 0, 0, set(), set(), 0
    for kept, access in (("memory", "json"), ("sealed", "common")):
        planted = Planted(kept)
        if kept == "memory":
            del planted["identity field"]  # an undeclared field cannot be recognized as a credential
        outputs, seen, status = await plant(options, planted, kept, access)
        outputs += parent(options, planted)
        found, there = planted.judge(outputs)
        for name, places in found.items():
            wrong.setdefault(name, {}).update(places)
        allowed, count, states, number = allowed + there, count + len(outputs), states | seen, number + len(planted)
        size += sum(len(data) for _, data in outputs)
        kinds |= {re.sub(r"/[^/]*$", "", where) if where.startswith("file") else where for where, _ in outputs}
        if status != 0:
            wrong["the server's end"] = {kept: status}
    for name, places in wrong.items():
        print(f"   {name}: {', '.join(f'{where} ({form})' if form != 'as it is' else where for where, form in sorted(places.items()))}")
    return Result(
        f"S1: {number} secrets in hits, misses, queued writes, refusals, conflicts, lost answers, redirects and broken heads",
        "in clear only where what was written is kept to be sent, and in the key of what is stored",
        f"{count:,} outputs of {len(kinds)} kinds, {size / 1e6:.0f} MB, operations {', '.join(sorted(states))}; "
        f"{allowed:,} times where they may be; elsewhere {len(wrong)}{': ' + ', '.join(wrong) if wrong else ''}",
        not wrong,
    )
