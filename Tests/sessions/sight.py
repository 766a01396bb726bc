"""Stories of sight: what a client had in front of it when it wrote, and which of its writes a reply contains (docs/outbox.md#sight).

Each story is played for each kind of API and each way by which a write reaches it.
"""

import concurrent.futures
import itertools
import json
import random
import shutil
import signal
import threading
import time

from api import NotesAPI
from client import Broken, Client
from sequences import PATIENCE, conflicts
from server import Server, free_port

KINDS = {
    "etag": 'resources: [{ collection: /v1/notes, item: "/v1/notes/{id}", version: etag }]',
    "weak": 'resources: [{ collection: /v1/notes, item: "/v1/notes/{id}", version: etag }]',
    "member": 'resources: [{ collection: /v1/notes, item: "/v1/notes/{id}", version: /version }]',
    "nested": 'resources: [{ collection: /v1/notes, item: "/v1/notes/{id}", version: /meta/version, updated_at: /meta/at }]',
    "undeclared": "",
}
WAYS = ("live", "queued", "killed", "ended")


class SightAPI(NotesAPI):
    """Its versions are what `kind` says; an answer can be held back or lost."""

    def __init__(self, port, kind, caching="no-cache"):
        super().__init__(port, caching=caching, tags=kind in ("etag", "weak", "undeclared"))
        self.kind, self.held, self.holding = kind, threading.Event(), ""
        self.arrived = threading.Event()

    def tag(self, note):
        return ("W/" if self.kind == "weak" else "") + super().tag(note)

    def change(self, name, method, note, created=False):
        version = self.versions.get(name, 0) + 1
        if self.kind == "member":
            note = {**note, "version": version}
        if self.kind == "nested":
            note = {**note, "meta": {"version": version, "at": time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{version:03}Z"}}
        return super().change(name, method, note, created)

    def answer(self, method, path, fields, body):
        name = path.rpartition("/")[2]
        if isinstance(body, list) and name in self.notes:
            # A JSON Patch (RFC 6902) that appends.
            note = self.notes[name]
            body = {"tags": note.get("tags", []) + [one["value"] for one in body]}
        if method == "PUT" and name in self.notes and self.kind in ("member", "nested"):
            # The version in the body is its condition.
            place = (lambda note: note.get("version")) if self.kind == "member" else (lambda note: note.get("meta", {}).get("version"))
            if place(body) not in (None, place(self.notes[name])):
                return self.message(409, value={"error": "another version"})
        return super().answer(method, path, fields, body)

    def arrive(self, method, target, fields, body):
        reply = super().arrive(method, target, fields, body)
        if self.holding and method == self.holding:
            # The effect is there, the answer waits; the lock is not held by the one who waits.
            self.arrived.set()
            self.lock.release()
            self.held.wait(20)
            self.lock.acquire()
        return reply

    def edit(self, name, **members):
        """Somebody else's change, not through the proxy."""
        with self.lock:
            self.change(name, "PATCH", {**self.notes[name], **members})


class World:
    def __init__(self, options, kind, way):
        self.api = SightAPI(free_port(), kind)
        self.kind, self.way = kind, way
        for number in range(3):
            self.api.arrive("POST", "/v1/notes", {}, json.dumps({"title": f"note {number}", "body": "b", "count": number}).encode())
        self.api.open()
        self.server = Server(
            options.binary,
            self.api.port,
            policy="offline-first",
            patience="connect: 1s, first_byte: 3s, idle: 3s",
            upstream=f"probe: {{ path: /healthz, interval: 1s, expect: 204 }}, idempotency: {{ honoured: yes, max_processing: 1s }},"
            f" queue: {{ repeats: each }}, {KINDS[kind]}",
        )
        self.clients = []

    def client(self, name):
        client = Client(name, self.server, random.Random(1))
        self.clients.append(client)
        return client

    def write(self, client, method, path, body=None, **fields):
        """Sends a write in the way of this world: online, or away; then restarts if the way says so."""
        if self.way != "live":
            self.away()
        return client.send(method, path, body, **fields)

    def save(self, client, seen, **fields):
        """Puts back what was seen with another title, and waits for its end."""
        reply = self.write(client, "PUT", "/v1/notes/1", whole(seen, title="mine"), **fields)
        self.back()
        return reply

    def hold(self, method):
        """Brings the API back, which takes the next write of this method and keeps its answer until `release`."""
        self.api.holding, self.api.held = method, threading.Event()
        self.api.open()
        self.server.network("auto")
        if not self.api.arrived.wait(10):
            raise Broken(f"the {method} is not sent")

    def release(self):
        self.api.holding = ""
        self.api.held.set()

    def away(self):
        self.api.close()
        self.server.network("offline")

    def back(self):
        """Restarts as the way asks, brings the API back, and waits until nothing is open."""
        if self.way == "killed":
            self.server.kill(signal.SIGKILL)
            self.server.start()
        elif self.way == "ended":
            self.server.stop(keep=True)
            self.server.start()
        self.api.open()
        self.server.network("auto")
        self.settle()

    def close(self):
        self.release()
        self.api.close()
        if self.server.alive:
            self.server.kill()
        shutil.rmtree(self.server.scratch, ignore_errors=True)

    def settle(self):
        until = time.monotonic() + PATIENCE
        while left := [one for one in self.server.operations() if one["state"] in ("pending", "inflight", "uncertain")]:
            if time.monotonic() > until:
                raise Broken(f"still open: {[(o['method'], o['url'], o['state'], o.get('reason'), o.get('lastError')) for o in left]}")
            time.sleep(0.05)

    def record(self):
        """True if something says that a write was not simply taken."""
        return bool(conflicts(self.server)) or any(one["state"] in ("conflicted", "dead") for one in self.server.operations())

    def expect_no_lost(self, reply, name, **theirs):
        """Unless nothing could tell: a weak tag is no condition (RFC 9110 §13.1.1), so that only a queued write is compared."""
        if self.kind == "weak" and self.way == "live":
            return
        note = self.api.notes.get(name)
        kept = note is not None and all(note.get(member) == value for member, value in theirs.items())
        if not kept and reply.status not in (409, 412) and not self.record():
            raise Broken(f"lost update: {note} lacks {theirs}; the write was answered {reply.status}")

    def expect_no_conflict(self):
        found = conflicts(self.server)
        ended = [one for one in self.server.operations() if one["state"] in ("conflicted", "dead", "uncertain")]
        states = [(one["method"], one["url"], one["state"], one.get("reason")) for one in ended]
        if found or states:
            raise Broken(f"conflict with oneself: {[(one['kind'], one['url']) for one in found]} {states}")

    def expect_list(self, client, ids, why):
        reply = client.send("GET", "/v1/notes")
        shown = [note["id"] for note in reply.json] if reply.status == 200 else reply.status
        if shown != ids:
            raise Broken(f"{why}: the list shows {shown}, not {ids}")


def whole(note, **changes):
    """The representation that a client puts back, with its changes."""
    return {**note, **changes}


# --- a base that the client had not seen


def background_refresh(world):
    """A background refresh stores v2 while its client is shown v1."""
    ann = world.client("ann")
    world.api.caching = "max-age=0, stale-while-revalidate=600"
    seen = ann.send("GET", "/v1/notes/1").json
    world.api.edit("1", body="theirs")
    # Shown v1; v2 is stored behind it.
    if ann.send("GET", "/v1/notes/1").json != seen:
        return
    time.sleep(0.4)
    reply = world.save(ann, seen)
    world.expect_no_lost(reply, "1", body="theirs")


def second_viewer(world):
    """Two users, one shared copy: the second one's read is not the first one's."""
    world.api.caching = "public, max-age=60"
    ann, carl = world.client("ann"), world.client("carl")
    seen = ann.send("GET", "/v1/notes/1", Authorization="Bearer a").json
    world.api.edit("1", body="theirs")
    carl.send("GET", "/v1/notes/1", Authorization="Bearer c", Cache_Control="no-cache")
    reply = world.save(ann, seen, Authorization="Bearer a")
    if reply.status in (200, 202, 204):
        ann.send("GET", "/v1/notes/2", Authorization="Bearer a")
        world.settle()
    world.expect_no_lost(reply, "1", body="theirs")


def no_store(world):
    """What was seen with no-store counts as what it was."""
    world.api.caching = "no-store"
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes/1").json
    world.api.edit("1", body="theirs")
    reply = world.save(ann, seen)
    # The content is not kept.
    if world.kind != "weak":
        world.expect_no_lost(reply, "1", body="theirs")


def purge(world):
    """A purge between read and save takes the copy, not what was seen."""
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes/1").json
    world.server.call("POST", "/v1/cache/purge", {"all": True})
    world.api.edit("1", body="theirs")
    reply = world.save(ann, seen)
    world.expect_no_lost(reply, "1", body="theirs")


def list_only(world):
    """Seen through a list only."""
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes").json[0]
    world.api.edit("1", body="theirs")
    reply = world.save(ann, seen)
    if world.kind in ("member", "nested"):
        world.expect_no_lost(reply, "1", body="theirs")


def selection(world):
    """Seen through a selection of members."""
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes/1?fields=id,title,body").json
    world.api.edit("1", body="theirs")
    reply = world.save(ann, seen)
    if world.kind == "member":
        world.expect_no_lost(reply, "1", body="theirs")


def undone(world):
    """Read, changed by another, saved: the plain case."""
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes/1").json
    world.api.edit("1", body="theirs")
    reply = world.save(ann, seen)
    world.expect_no_lost(reply, "1", body="theirs")


def two_states(world):
    """Two programs of one credential: the one that saves a whole note had the older state in front of it."""
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes/1").json
    world.api.edit("1", body="theirs")
    world.client("ann in another window").send("GET", "/v1/notes/1", Cache_Control="no-cache")
    reply = world.save(ann, seen)
    if world.kind != "undeclared":
        world.expect_no_lost(reply, "1", body="theirs")


def two_programs(world):
    """Two devices with one credential: what the other one has changed since is somebody else's change."""
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes/1", User_Agent="till").json
    ann.send("GET", "/v1/notes/1", User_Agent="tablet")
    world.write(ann, "PATCH", "/v1/notes/1", {"body": "theirs"}, User_Agent="tablet")
    reply = world.save(ann, seen, User_Agent="till")
    world.expect_no_lost(reply, "1", body="theirs")


def two_programs_in_turn(world):
    """Two devices with one credential, each of which reads before it writes, meet nobody."""
    ann = world.client("ann")
    for turn, device in enumerate(("till", "tablet") * 2):
        seen = ann.send("GET", "/v1/notes/1", User_Agent=device).json
        world.write(ann, "PUT", "/v1/notes/1", whole(seen, title=f"t{turn}"), User_Agent=device)
    world.back()
    world.expect_no_conflict()
    if world.api.notes["1"]["title"] != "t3":
        raise Broken(f"the last edit is not there: {world.api.notes['1']}")


def crashed(world):
    """What was seen before a crash counts after it, and what was written before it as well."""
    ann = world.client("ann")
    world.api.caching = "max-age=0, stale-while-revalidate=600"
    seen = ann.send("GET", "/v1/notes/1").json
    world.api.edit("1", body="theirs")
    if ann.send("GET", "/v1/notes/1").json != seen:
        return
    time.sleep(0.5)
    world.server.kill(signal.SIGKILL)
    world.server.start()
    reply = world.save(ann, seen)
    # Contents are not kept.
    if world.kind in ("etag", "undeclared"):
        world.expect_no_lost(reply, "1", body="theirs")


def crashed_after_a_write(world):
    """A version from before an own write is no condition after a crash."""
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes/1").json
    time.sleep(0.5)
    ann.send("PUT", "/v1/notes/1", whole(seen, title="one"))
    world.server.kill(signal.SIGKILL)
    world.server.start()
    world.write(ann, "PATCH", "/v1/notes/1", {"title": "two"})
    world.back()
    world.expect_no_conflict()
    if world.api.notes["1"]["title"] != "two":
        raise Broken(f"the last edit is not there: {world.api.notes['1']}")


def undone_change(world):
    """A client that undoes its own change means it."""
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes/1").json
    world.write(ann, "PUT", "/v1/notes/1", whole(seen, title="mine"))
    again = ann.send("GET", "/v1/notes/1").json
    world.write(ann, "PUT", "/v1/notes/1", whole(again, title=seen["title"]))
    world.back()
    world.expect_no_conflict()
    if world.api.notes["1"]["title"] != seen["title"]:
        raise Broken(f"an undone change is there: {world.api.notes['1']}")


def restarted(world):
    """What was seen before a clean stop counts after it."""
    ann = world.client("ann")
    world.api.caching = "max-age=0, stale-while-revalidate=600"
    seen = ann.send("GET", "/v1/notes/1").json
    world.api.edit("1", body="theirs")
    if ann.send("GET", "/v1/notes/1").json != seen:
        return
    time.sleep(0.4)
    world.server.stop(keep=True)
    world.server.start()
    reply = world.save(ann, seen)
    # Contents are not kept.
    if world.kind in ("etag", "undeclared"):
        world.expect_no_lost(reply, "1", body="theirs")


def told_once(world):
    """On an undeclared path online the client is told of the other's change; if it writes again, it means it."""
    if world.kind != "undeclared" or world.way != "live":
        return
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes/1").json
    world.api.edit("1", body="theirs")
    statuses = [ann.send("PUT", "/v1/notes/1", whole(seen, title="mine")).status for _ in range(2)]
    if statuses != [412, 200] or world.api.notes["1"]["title"] != "mine":
        raise Broken(f"told once: {statuses} {world.api.notes['1']}")
    ann.send("GET", "/v1/notes/1")
    if (again := ann.send("PATCH", "/v1/notes/1", {"title": "more"})).status != 200:
        raise Broken(f"after a read: {again}")


def removed(world):
    """What another has removed is not created again."""
    ann = world.client("ann")
    seen = ann.send("GET", "/v1/notes/1").json
    with world.api.lock:
        del world.api.notes["1"]
    world.save(ann, seen)
    if "1" in world.api.notes and not world.record():
        raise Broken(f"created again what another had removed: {world.api.notes['1']}")


# --- conflicts with oneself


def own_weak_condition(world):
    """Two edits under the client's own condition in one outage are one client's."""
    ann = world.client("ann")
    first = ann.send("GET", "/v1/notes/1")
    tag = first.fields.get("etag")
    if tag is None:
        return
    world.write(ann, "PUT", "/v1/notes/1", whole(first.json, title="one"), If_Match=tag)
    second = world.write(ann, "PUT", "/v1/notes/1", whole(first.json, title="two"), If_Match=tag)
    world.back()
    if world.way == "live":
        if second.status != 412:
            raise Broken(f"a condition that fails was passed over: {second}")
        return
    world.expect_no_conflict()
    if world.api.notes["1"]["title"] != "two":
        raise Broken(f"own edits under one condition: {world.api.notes['1']}")


def own_chain(world):
    """A chain of edits, each after a read, each way."""
    ann = world.client("ann")
    for turn in range(4):
        seen = ann.send("GET", "/v1/notes/1").json
        change = {"title": f"t{turn}"}
        world.write(ann, "PUT" if turn % 2 else "PATCH", "/v1/notes/1", whole(seen, **change) if turn % 2 else change)
    world.back()
    world.expect_no_conflict()
    if world.api.notes["1"]["title"] != "t3":
        raise Broken(f"the last edit is not there: {world.api.notes['1']}")


def post_then_delete(world):
    """Away: POST, then DELETE of the new item."""
    ann = world.client("ann")
    reply = world.write(ann, "POST", "/v1/notes", {"title": "new"})
    place = reply.fields.get("content-location") or reply.fields.get("location")
    if world.kind == "undeclared" or not place or "operations" in place:
        listed = ann.send("GET", "/v1/notes").json
        new = [note["id"] for note in listed if note["title"] == "new"] if isinstance(listed, list) else []
        if world.kind == "undeclared" or not new:
            return world.back()
        place = f"/v1/notes/{new[0]}"
    reply = world.write(ann, "DELETE", place)
    world.back()
    world.expect_no_conflict()
    if len(world.api.notes) != 3:
        raise Broken(f"a new item that was deleted is there: {world.api.notes}")


def behind_lost_action(world):
    """PATCH behind an action whose answer was lost."""
    ann = world.client("ann")
    ann.send("GET", "/v1/notes/1")
    world.api.losing = 1
    ann.send("POST", "/v1/notes/1/toggle", {})
    world.write(ann, "PATCH", "/v1/notes/1", {"title": "after"})
    world.back()
    world.expect_no_conflict()
    if world.api.notes["1"]["title"] != "after":
        raise Broken(f"the edit is not there: {world.api.notes['1']}")


def shown_without_own_action(world):
    """An old copy that is served away, marked as lacking an own action, is no version to build on, however often it is read."""
    world.api.answers, world.api.caching = "nothing", "max-age=60"
    ann = world.client("ann")
    ann.send("GET", "/v1/notes/1")
    ann.send("POST", "/v1/notes/1/toggle", {})
    world.away()
    for _ in range(3):
        ann.send("GET", "/v1/notes/1")
    ann.send("PATCH", "/v1/notes/1", {"title": "mine"})
    world.back()
    world.expect_no_conflict()
    if world.api.notes["1"]["title"] != "mine":
        raise Broken(f"an edit after an own action: {world.api.notes['1']}")


def behind_action(world):
    """Two edits behind a queued action, at an API that answers writes without a body."""
    world.api.answers = "nothing"
    ann = world.client("ann")
    ann.send("GET", "/v1/notes/1")
    world.write(ann, "POST", "/v1/notes/1/toggle", {})
    for title in ("one", "two", "three"):
        world.write(ann, "PATCH", "/v1/notes/1", {"title": title})
    world.back()
    world.expect_no_conflict()
    note = world.api.notes["1"]
    if note["title"] != "three" or not note["done"]:
        raise Broken(f"edits behind an action: {note}")


# --- own writes in reads


def create_in_flight(world):
    """A queued create in flight is listed once; a DELETE of its local id is about the one item."""
    if world.kind == "undeclared":
        return
    ann = world.client("ann")
    ann.send("GET", "/v1/notes")
    world.away()
    ann.send("POST", "/v1/notes", {"title": "new"})
    local = [note["id"] for note in ann.send("GET", "/v1/notes").json if note["title"] == "new"]
    world.hold("POST")
    titles = [note["title"] for note in ann.send("GET", "/v1/notes", Cache_Control="no-cache").json]
    if titles.count("new") != 1:
        raise Broken(f"a create in flight: the list shows {titles}")
    reply = ann.send("DELETE", f"/v1/notes/{local[0]}")
    titles = [note["title"] for note in ann.send("GET", "/v1/notes").json]
    if titles.count("new") != 0:
        raise Broken(f"after DELETE of its local id ({reply.status}) the list shows {titles}")
    world.release()
    world.settle()
    world.expect_no_conflict()
    if any(note["title"] == "new" for note in world.api.notes.values()):
        raise Broken(f"the deleted item is there: {world.api.notes}")


def lost_create(world):
    """A queued create whose answer was lost is listed once."""
    if world.kind == "undeclared":
        return
    ann = world.client("ann")
    ann.send("GET", "/v1/notes")
    world.away()
    ann.send("POST", "/v1/notes", {"title": "new"})
    world.api.losing = 1
    world.back()
    world.expect_list(ann, ["1", "2", "3", "4"], "a create with a lost answer")


def append_in_flight(world):
    """A JSON Patch in flight is not folded into a copy that has it."""
    if world.kind == "undeclared":
        return
    ann = world.client("ann")
    world.api.edit("1", tags=["a"])
    ann.send("GET", "/v1/notes/1")
    world.away()
    ann.send("PATCH", "/v1/notes/1", [{"op": "add", "path": "/tags/-", "value": "x"}], Content_Type="application/json-patch+json")
    world.hold("PATCH")
    reply = ann.send("GET", "/v1/notes/1", Cache_Control="no-cache")
    if reply.json.get("tags") != ["a", "x"] and not reply.fields.get("rockpool-dirty"):
        raise Broken(f"a JSON Patch in flight: {reply.json} {reply.fields}")
    world.release()
    world.settle()


def emptied_and_filled(world):
    """Away: DELETE of all items, POST of one; back; a crash; the created one is in item and list."""
    if world.kind == "undeclared":
        return
    ann = world.client("ann")
    ann.send("GET", "/v1/notes")
    for name in ("1", "2", "3"):
        world.write(ann, "DELETE", f"/v1/notes/{name}")
    world.write(ann, "POST", "/v1/notes", {"title": "new"})
    world.back()
    if world.way in ("killed", "ended"):
        world.server.kill(signal.SIGKILL) if world.way == "killed" else world.server.stop(keep=True)
        world.server.start()
    world.away()
    world.expect_list(ann, ["4"], "emptied and filled")
    if (reply := ann.send("GET", "/v1/notes/4")).status != 200:
        raise Broken(f"the created item is not read: {reply}")


def list_with_query(world):
    """A list stored with a query shows own writes, live and queued."""
    if world.kind == "undeclared":
        return
    world.api.caching = "max-age=60"
    ann = world.client("ann")
    ann.send("GET", "/v1/notes?sort=id")
    world.write(ann, "PATCH", "/v1/notes/2", {"title": "mine"})
    if world.way == "live":
        world.away()
    titles = [note["title"] for note in ann.send("GET", "/v1/notes?sort=id").json]
    if "mine" not in titles:
        raise Broken(f"a list with a query shows {titles}")
    world.back()


def deleted_from_list(world):
    """A list after an own DELETE is not the old one."""
    world.api.caching = "max-age=60"
    ann = world.client("ann")
    ann.send("GET", "/v1/notes")
    ann.send("GET", "/v1/notes/2")
    world.write(ann, "DELETE", "/v1/notes/2")
    if world.kind != "undeclared":
        world.expect_list(ann, ["1", "3"], "after an own DELETE")
    world.back()
    world.expect_list(ann, ["1", "3"], "after an own DELETE, back")


def eight_posts(world):
    """Eight POSTs of one client arrive in their order."""
    ann = world.client("ann")
    for number in range(8):
        world.write(ann, "POST", "/v1/notes", {"title": f"n{number}"})
    world.back()
    titles = [note["title"] for note in world.api.notes.values()][3:]
    if titles != [f"n{number}" for number in range(8)]:
        raise Broken(f"eight POSTs arrived as {titles}")


def tag_after_conflict(world):
    """A local tag does not outlive a dead write."""
    if world.kind == "undeclared":
        return
    ann = world.client("ann")
    ann.send("GET", "/v1/notes/1")
    world.away()
    reply = ann.send("PATCH", "/v1/notes/1", {"title": "mine"})
    shown = ann.send("GET", "/v1/notes/1")
    operation = reply.fields.get("rockpool-operation")
    world.server.call("POST", f"/v1/operations/{operation}/cancel")
    world.api.open()
    world.server.network("auto")
    time.sleep(0.3)
    after = ann.send("GET", "/v1/notes/1", If_None_Match=shown.fields.get("etag", '"none"'))
    if after.status == 304 or after.json.get("title") == "mine":
        raise Broken(f"after a cancelled write: {after}")


STORIES = [
    background_refresh,
    second_viewer,
    no_store,
    purge,
    list_only,
    selection,
    undone,
    two_states,
    two_programs,
    two_programs_in_turn,
    crashed,
    crashed_after_a_write,
    undone_change,
    restarted,
    told_once,
    removed,
    own_weak_condition,
    own_chain,
    post_then_delete,
    behind_lost_action,
    behind_action,
    shown_without_own_action,
    create_in_flight,
    lost_create,
    append_in_flight,
    emptied_and_filled,
    list_with_query,
    deleted_from_list,
    eight_posts,
    tag_after_conflict,
]


def told(options, story, kind, way):
    """Plays one story; returns what broke in it, nothing if it held."""
    world = World(options, kind, way)
    try:
        story(world)
    except (Broken, OSError, KeyError, TypeError, AttributeError, ValueError) as found:
        lines = [line for client in world.clients for line in client.story]
        return f"{type(found).__name__}: {found}\n" + "".join(f"    {line[:300]}\n" for line in lines)
    finally:
        world.close()
    return None


def all_stories(options, only=""):
    """Plays every story that has `only` in its name, several at a time, because they mostly wait; returns the broken ones."""
    plays = [play for play in itertools.product(STORIES, KINDS, WAYS) if only in name_of(*play)]
    broken = {}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for play, found in zip(plays, pool.map(lambda play: told(options, *play), plays), strict=True):
            if found:
                broken[name_of(*play)] = found
                print(f"{name_of(*play)}: {found}", flush=True)
    return broken


def name_of(story, kind, way):
    return f"{story.__name__} {kind} {way}"
