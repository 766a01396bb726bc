"""Random sequences of one or two clients behind the proxy, compared with a model (docs/outbox.md#properties).

The guarantees are the session guarantees of Terry et al. (1994): read your writes, monotonic reads, writes follow reads, monotonic writes.
"""

import random
import signal
import threading
import time

from api import NotesAPI
from client import Broken, Client
from server import Server, free_port

WRITES = ("put", "patch", "patch", "create", "delete", "action")
OPEN = "pending,inflight,uncertain,conflicted,parked,dead"
PATIENCE = 25


class Direct:
    """In place of the proxy: the API itself, which is never away. The generator and the model must agree with it."""

    alive = True

    def __init__(self, port):
        self.gateway = port

    def operations(self, _="all"):
        return []

    def call(self, *_):
        return {"items": [], "next": None}

    def stop(self, **_):
        return 0


class Line:
    """The line between proxy and API: on, off, or flapping in a thread of its own."""

    def __init__(self, api, chance, is_fixed):
        self.api, self.chance, self.is_fixed = api, random.Random(chance.random()), is_fixed
        self.ending, self.thread = threading.Event(), None

    def turn(self, weather):
        self.ending.set()
        if self.thread:
            self.thread.join()
        self.ending, self.thread = threading.Event(), None
        if self.is_fixed or weather == "on":
            self.api.open()
        elif weather == "off":
            self.api.close()
        else:
            self.thread = threading.Thread(target=self.flap, args=(self.ending,), daemon=True)
            self.thread.start()

    def flap(self, ending):
        while not ending.is_set():
            self.api.open()
            self.api.losing = self.chance.choice((0, 0, 1))
            ending.wait(self.chance.uniform(0.02, 0.3))
            self.api.close()
            ending.wait(self.chance.uniform(0.02, 0.2))
        self.api.losing = 0


def made(options, api, chance, *, merges=False):
    """A proxy in front of the API."""
    if options.stub:
        return Direct(api.port)
    response = chance.choice(("accepted", "optimistic"))
    conflict = f", conflict: {chance.choice(('field-merge', 'server-wins', 'client-wins'))}" if merges else ""
    return Server(
        options.binary,
        api.port,
        policy="offline-first",
        upstream=f"""probe: {{ path: /healthz, interval: 1s, expect: 204 }}, idempotency: {{ honoured: yes, max_processing: 1s }},
      queue: {{ repeats: each }},
      resources: [{{ collection: /v1/notes, item: "/v1/notes/{{id}}", version: etag, offline_response: {response}{conflict} }}]""",
    )


def restart(server, chance):
    if isinstance(server, Direct):
        return
    if chance.random() < 0.5:
        server.kill(signal.SIGKILL)
    else:
        status = server.stop(keep=True)
        if status:
            raise Broken(f"a clean stop: {status}")
    server.start()


def reconnected(server):
    """Waits until the proxy has found the API again: before, a read may lack the effect of an action, and says so."""
    until = time.monotonic() + PATIENCE
    while not isinstance(server, Direct) and server.call("GET", "/v1/status")["upstreams"][0]["reachability"] != "online":
        if time.monotonic() > until:
            raise Broken("availability: the proxy does not find the API again")
        time.sleep(0.05)


def settled(server):
    """Waits until nothing is open. Raises if anything stays open."""
    until = time.monotonic() + PATIENCE
    while operations := server.operations(OPEN):
        if time.monotonic() > until:
            shown = [(o["method"], o["url"], o["state"], o.get("reason"), o.get("lastError")) for o in operations]
            raise Broken(f"every write reaches the API: {len(shown)} are still open: {shown[:3]}")
        time.sleep(0.05)


def conflicts(server):
    return [server.call("GET", f"/v1/conflicts/{one['id']}") for one in server.call("GET", "/v1/conflicts?state=all&limit=500")["items"]]


def in_order(api, client):
    """Monotonic writes, writes follow reads: the effects on each note come in the order in which its client made them, each once."""
    last = {}
    for name, method, note in api.effects:
        if method == "toggle" or note is None:
            continue
        mark = note.get(f"mark-{client.name}")
        number = int(mark[len(client.name) :]) if mark else 0
        if number <= last.get(name, 0):
            raise Broken(f"monotonic writes: note {name} had {client.name}{last[name]} before {mark}, or that twice")
        last[name] = number


def same(api, client):
    """No lost update: the API has what the client means, and nothing else."""
    stand = sorted(repr(sorted(client.members(note).items())) for note in api.notes.values())
    meant = sorted(repr(sorted(note.items())) for note in client.view.values())
    if stand != meant:
        lost, extra = sorted(set(meant) - set(stand)), sorted(set(stand) - set(meant))
        raise Broken(f"lost update: the API lacks {lost} and has {extra}")


def seeded(chance, **manners):
    api = NotesAPI(free_port(), **manners)
    for number in range(3):
        api.arrive("POST", "/v1/notes", {}, f'{{"title": "note {number}", "count": {number}}}'.encode())
    api.effects.clear()
    api.log.clear()
    api.open()
    return api


def one_client(options, seed, steps):
    """One client never conflicts with itself, loses nothing, and reads its own view at every step."""
    chance = random.Random(seed)
    api = seeded(
        chance,
        caching=chance.choice(("max-age=60", "no-cache", "")),
        tags=chance.random() < 0.8,
        answers=chance.choice(("representation", "nothing", "no tag")),
    )
    server = made(options, api, chance)
    client, line = Client("a", server, chance), Line(api, chance, options.stub)
    client.story.append(f"API: caching {api.caching!r}, tags {api.tags}, writes answered by {api.answers}")
    for name, note in api.notes.items():
        client.note(name, note)
    try:
        client.read_list()
        # Otherwise the notes are known from the list only.
        if chance.random() < 0.5:
            for name in sorted(client.view):
                client.read(name)
        for _ in range(steps):
            step(client, server, line, chance)
        if options.strict and client.unexplained:
            raise Broken(f"read your writes: {client.unexplained} reads are marked, although the effect of every write is known")
        line.turn("on")
        reconnected(server)
        settled(server)
        check_end(client, api, server)
    except Broken as broken:
        return broken, client.story + ["at the API: " + repr(line) for line in api.log[-40:]]
    finally:
        line.turn("off")
        api.close()
        server.stop()
    return None, []


def step(client, server, line, chance):
    kind = chance.choices(("read", "list", "write", "line", "restart"), (30, 10, 40, 17, 3))[0]
    if kind == "read":
        client.read(chance.choice(sorted({*client.view, *client.gone})))
    elif kind == "list":
        client.read_list()
    elif kind == "write":
        client.write(chance.choice(WRITES) if client.view else "create")
    elif kind == "line":
        weather = chance.choice(("on", "off", "flapping"))
        client.story.append(f"the line is {weather}")
        client.is_in_doubt |= weather == "flapping"
        line.turn(weather)
    else:
        client.story.append("restart")
        restart(server, chance)


def check_end(client, api, server):
    if found := conflicts(server):
        raise Broken(f"one client never conflicts with itself: {found[0]}")
    same(api, client)
    in_order(api, client)
    client.acted.clear()
    for name in sorted(client.view) + sorted(client.gone):
        client.read(name, may_be_marked=False)
    client.read_list(may_be_marked=False)
