"""Two clients, each behind a proxy of its own: no update is lost without a recorded conflict (docs/outbox.md#properties)."""

import json
import random
import time

from client import Broken, Client
from sequences import OPEN, PATIENCE, Line, conflicts, made, seeded, settled

TEXTS = ("title", "body")


class Rival(Client):
    """A client that writes to what it has read, and remembers each value that it wrote knowing another."""

    def __init__(self, name, server, chance):
        super().__init__(name, server, chance)
        self.last, self.values, self.replaced = {}, [], set()

    def look(self, name):
        """Reads a note, past the cache where the line permits it; what it shows is what the next write is based on."""
        reply = self.send("GET", f"/v1/notes/{name}", Cache_Control="no-cache")
        if reply.status == 200 and isinstance(reply.json, dict):
            seen = self.members(reply.json)
            self.last[name] = seen
            self.tags[name] = reply.fields.get("etag")
        elif reply.status == 404:
            self.last.pop(name, None)

    def change(self, name):
        """Changes a note after a read of it: an API alone, too, loses updates based on an old read and sent without a condition."""
        self.look(name)
        before = self.last.get(name)
        if before is None:
            return
        self.written += 1
        member, mark = self.chance.choice(TEXTS), f"{self.name}{self.written}"
        condition = {"If_Match": self.tags[name]} if self.tags.get(name) and self.chance.random() < 0.3 else {}
        after = {**before, member: mark}
        replaces = self.chance.random() < 0.5
        reply = self.send("PUT" if replaces else "PATCH", f"/v1/notes/{name}", after if replaces else {member: mark}, **condition)
        self.tags[name] = None
        if 200 <= reply.status < 300:
            self.values.append((name, member, mark))
            self.replaced.add((name, member, before.get(member)))
            self.last[name] = after

    def remove(self, name):
        self.look(name)
        before = self.last.pop(name, None)
        if before is None:
            return
        if 200 <= self.send("DELETE", f"/v1/notes/{name}").status < 300:
            self.replaced |= {(name, member, before.get(member)) for member in TEXTS}


def two_clients(options, seed, steps):
    """No lost update without a recorded conflict."""
    chance = random.Random(seed)
    api = seeded(chance, caching=chance.choice(("max-age=1", "no-cache", "")))
    servers = [made(options, api, chance, merges=True) for _ in range(2)]
    clients = [Rival(name, server, chance) for name, server in zip("ab", servers, strict=True)]
    story = clients[1].story = clients[0].story
    try:
        for client in clients:
            for name in sorted(api.notes):
                client.look(name)
        for _ in range(steps):
            turn(chance.choice(clients), chance, options)
        for client in clients:
            if not options.stub:
                client.server.network("auto")
        for server in servers:
            decide(server, chance)
        expect_found(api, clients, [record for server in servers for record in conflicts(server)])
    except Broken as broken:
        return broken, story
    finally:
        Line(api, chance, True).turn("on")
        for server in servers:
            server.stop()
        api.close()
    return None, []


def decide(server, chance):
    """Decides each open conflict at random until nothing is open; the records stay."""
    until = time.monotonic() + PATIENCE
    while server.operations(OPEN) and time.monotonic() < until:
        for conflict in server.call("GET", "/v1/conflicts?state=open&limit=500")["items"]:
            server.call("POST", f"/v1/conflicts/{conflict['id']}/resolve", {"resolution": chance.choice(("mine", "theirs"))})
        time.sleep(0.1)
    settled(server)


def turn(client, chance, options):
    kind = chance.choices(("look", "change", "remove", "line"), (40, 40, 2, 18))[0]
    name = chance.choice(("1", "2", "3"))
    if kind == "line" and not options.stub:
        mode = chance.choice(("auto", "offline"))
        client.story.append(f"{client.name}: the network is {mode}")
        client.server.network(mode)
    elif kind == "change":
        client.change(name)
    elif kind == "remove":
        client.remove(name)
    else:
        client.look(name)


def expect_found(api, clients, records):
    """Each accepted value stands, was replaced by a client that had read it, or is in the record of a conflict."""
    replaced = set().union(*(client.replaced for client in clients))
    recorded = json.dumps(records)
    for client in clients:
        for name, member, value in client.values:
            stands = api.notes.get(name, {}).get(member) == value
            if not stands and (name, member, value) not in replaced and f'"{value}"' not in recorded:
                raise Broken(f"lost update without a recorded conflict: {member} of note {name} was {value}: {api.notes.get(name)}")
