"""Rockpool's requests to the upstream, read by three other parsers: none may interpret them differently."""

import collections
import json
import time
from pathlib import Path

from oddities import BROKEN
from oddities import cases as oddities
from readings import batches, control, fragments, judge
from recorder import REQUEST_LINE, Message, Recorder, read_body, read_head
from references import Reference
from result import Result
from server import Server
from wire import Talk, fill, steps

RAW = Path(__file__).resolve().parents[1] / "raw-http"


class Chain:
    """The real binary between raw clients and a recorder, in one mode."""

    def __init__(self, options, mode):
        self.mode, self.origin = mode, Recorder()
        # One listener buffers complete bodies, as they may have to be queued; the other streams them.
        upstream = 'routes: [{ match: "/**", queue: never }]' if mode == "forward" else "queue: { max_body: 64 KB }"
        self.server = Server(
            options.binary,
            self.origin.port,
            timeouts="head: 2s, body: 2s, idle: 10s",
            upstream=upstream,
            proxy=f"connect_ports: [443, {self.origin.port}]",
            patience="connect: 1s, first_byte: 3s, idle: 5s",
        )
        self.names = {
            "T": f"http://{self.origin.address}" if mode == "forward" else "",
            "ORIGIN": self.origin.address,
            "PROXY": f"127.0.0.1:{self.port}",
            "ADMIN": f"127.0.0.1:{self.server.admin}",
            "PROXYNAME": "rockpool",
            "HOST": f"Host: {self.origin.address}\r\n",
        }
        self.owners, self.wrong, self.refused, self.sent = {}, [], {}, 0

    @property
    def port(self):
        return self.server.proxy if self.mode == "forward" else self.server.gateway

    def send(self, name, template, exact):
        """Sends one case; the requests that reach the origin meanwhile belong to it. `exact`: the case is legal and must arrive
        unchanged."""
        text, mark = fill(template, self.names), len(self.origin.pieces)
        requests = meant(b"".join(step for step in steps(text) if isinstance(step, bytes)), self.origin.address) if exact else []
        talk = Talk(("127.0.0.1", self.port), [text.lstrip("\r\n").split(" ")[0]])
        for step in steps(text):
            if isinstance(step, bytes):
                talk.send(step)
            elif step[0] == "EOF":
                talk.finish_sending()
            elif step[0] == "SLEEP":
                time.sleep(int(step[1]) / 1000)
        answers = [answer.status for answer in talk.read(2.5, max(1, len(requests)), quiet=0.03)]
        talk.close()
        arrived = [piece for piece in self.origin.pieces[mark:] if piece.message.parts[1] != b"/" or piece.message.parts[0] != b"HEAD"]
        self.sent += 1
        for piece in arrived:
            self.owners[id(piece)] = name
            if piece.message.faults or piece.message.values("Host") != [self.origin.address.encode()]:
                self.wrong.append(f"{name}: {piece.message.faults} {piece.message.values('Host')}")
        if len(arrived) > max(1, len(answers)):
            self.wrong.append(f"{name}: {len(arrived)} requests upstream for {len(answers)} answers")
        if exact:
            self.compare(name, requests, arrived, answers)

    def compare(self, name, requests, arrived, answers):
        got = [piece.message.parts[:2] + (piece.message.body,) for piece in arrived]
        if not got and answers and 400 <= answers[0] < 500:
            self.refused[name] = answers[0]
        elif got != requests:
            self.wrong.append(f"{name} ({answers}): {got!r:.200} for {requests!r:.200}")


def meant(data, origin):
    """(method, target in origin form, body) of each request in a client's bytes."""
    found, data = [], data.lstrip(b"\r\n")
    while b"\r\n\r\n" in data:
        message = Message()
        head, _, data = data.partition(b"\r\n\r\n")
        read_head(head, message, REQUEST_LINE)
        data = read_body(message, data) or b""
        method, target, _ = message.parts
        if target[:7].lower() == b"http://":
            target = target[7 + len(origin) :]
            # RFC 9112 §3.2.4: OPTIONS with neither path nor query addresses the server as a whole.
            target = target if target.startswith(b"/") else b"*" if method == b"OPTIONS" and not target else b"/" + target
        found.append((method, target, message.body))
    return found


def through(options, mode, raw, references):
    """Sends every case through one listener; returns the faults and a summary."""
    chain = Chain(options, mode)
    for case in raw:
        if mode in case.get("modes", [mode]) and not case.get("slow"):
            chain.send(case["name"], case["raw"], False)
    for name, template in BROKEN.items():
        chain.send(name, template, False)
    for name, template in oddities().items():
        chain.send(name, template, True)
    alive = chain.server.alive
    for stream in chain.origin.streams:
        for reference in references:
            for pieces in batches(stream):
                judge(reference, pieces, chain.owners, chain.wrong)
            fragments(reference, stream, chain.wrong)
    if not alive or chain.server.stop() != 0:
        chain.wrong.append("the server's end")
    chain.origin.close()
    broken = sum(bool(stream.rest) for stream in chain.origin.streams)
    return (
        [f"{mode}: {text}" for text in chain.wrong],
        chain.refused,
        (
            f"{mode}: {chain.sent} cases, {len(set(chain.owners.values()))} accepted, {len(chain.origin.pieces)} requests on "
            f"{len(chain.origin.streams)} connections upstream, {broken} broken off"
        ),
    )


async def chain(options):
    """Every accepted raw request and a hundred unusual ones: llhttp, nginx, HAProxy and a strict reader agree on the output."""
    references, wrong, refused, told = [], [], {}, []
    raw = [case for file in ("cases.json", "own.json") for case in json.loads((RAW / file).read_text()) if case["kind"] == "request"]
    try:
        for name in ("llhttp", "nginx", "haproxy"):
            references.append(Reference(name))
        if not control(references):
            wrong.append("the control: a difference is not seen")
        for mode in ("gateway", "forward"):
            found, denied, words = through(options, mode, raw, references)
            wrong, refused, told = wrong + found, refused | denied, told + [words]
    finally:
        for reference in references:
            reference.close()
    for entry, count in collections.Counter(wrong).items():
        print("  ", entry, f"({count} ×)" if count > 1 else "", flush=True)
    odd = ", ".join(f"{name} ({status})" for name, status in refused.items())
    return Result(
        f"R2: {len(raw)} raw requests and {len(oddities())} odd ones by both doors, read on by llhttp, nginx and HAProxy",
        "at most one request upstream for one; the same method, target, host, fields and body to all",
        f"{'; '.join(told)}; {len(wrong)} differences; odd but legal and yet refused: {odd or 'none'}",
        not wrong,
    )
