"""What one gateway finds out of date is not fresh at another. Each returns what was measured, or raises `Failed`."""

import http.client
import subprocess
import time
from dataclasses import dataclass
from urllib.parse import quote

from decided import thing
from fleet import Fleet, until
from holding import Failed
from postgres import Cluster

ITEM, LIST, OTHER = "/things/1", "/things", "/others"


@dataclass
class Copy:
    """What a gateway showed, whether it asked the upstream for it, and whether it said that the copy lacks a write."""

    text: str
    was_fetched: bool
    is_old: bool


def exchange(fleet, node, method, path, body=None, fields=None):
    """The answer and its text."""
    client = http.client.HTTPConnection("127.0.0.1", fleet.nodes[node].gateway, timeout=15)
    try:
        client.request(method, path, body, fields or {})
        answer = client.getresponse()
        return answer, answer.read().decode()
    finally:
        client.close()


def read(fleet, node, path):
    before = fleet.upstream.reads
    answer, text = exchange(fleet, node, "GET", path)
    if answer.status != 200:
        raise Failed(f"{node} answered {answer.status} for {path}")
    return Copy(text, fleet.upstream.reads > before, answer.getheader("Rockpool-Dirty") == "1")


def known_elsewhere(given):
    """S25: an online write and a purge at one gateway reach the fresh copies of another, and lists; a gateway that is gone is forgotten."""
    fleet = Fleet(given.binary, Cluster(), policy="offline-first")
    fleet.upstream.lifetime = 600
    fleet.upstream.documents[ITEM] = thing(1, "first")
    for node in "ab":
        for path in (ITEM, LIST, OTHER):
            read(fleet, node, path)
            if read(fleet, node, path).was_fetched:
                raise Failed(f"{node} has no fresh copy of {path}")
    status, _ = fleet.ask("a", "PUT", ITEM, '{"id": "1", "title": "second"}', {"Content-Type": "application/json"})
    if status != 200:
        raise Failed(f"the online write was answered {status}")
    write = until(lambda: "second" in read(fleet, "b", ITEM).text, 5, "b shows what was written at a")
    if read(fleet, "b", ITEM).was_fetched:
        raise Failed("the new copy of b is not fresh")
    lists = near(fleet)
    fleet.nodes["a"].call("DELETE", f"/v1/cache?url={quote(f'http://127.0.0.1:{fleet.upstream.port}{ITEM}', safe='')}")
    purge = until(lambda: read(fleet, "b", ITEM).was_fetched, 5, "b has lost what was purged at a")
    follow(fleet)
    forget(fleet)
    return f"a write was known elsewhere after {write:.1f} s, by its list after {lists:.1f} s, a purge after {purge:.1f} s"


def near(fleet):
    """A list near what was written at a is old at b: b says so while the upstream is away, and validates it then. Another one is fresh."""
    b = fleet.nodes["b"]
    b.network("offline")
    took = until(lambda: read(fleet, "b", LIST).is_old, 5, "b says that its list lacks the write")
    if read(fleet, "b", OTHER).is_old:
        raise Failed("what is not near the write is old at b")
    b.network("auto")
    if not read(fleet, "b", LIST).was_fetched:
        raise Failed("b uses its old list as fresh")
    again = read(fleet, "b", LIST)
    if again.was_fetched or again.is_old:
        raise Failed("the new list of b is not fresh")
    if read(fleet, "b", OTHER).was_fetched:
        raise Failed("b has asked for what is not near the write")
    return took


def follow(fleet):
    """What a has queued is shown by b at once to a client that brings the number of a's answer: b asks the database for up to 1 s."""
    for server in fleet.nodes.values():
        server.network("offline")
    for n in range(20):
        answer, _ = exchange(fleet, "a", "PUT", f"/notes/{n}", f"mine-{n}", {"Content-Type": "text/plain"})
        if answer.status != 202:
            raise Failed(f"a answered {answer.status} while the upstream was away")
        begun = time.monotonic()
        shown, text = exchange(fleet, "b", "GET", f"/notes/{n}", fields={"Rockpool-Seen": answer.getheader("Rockpool-Seen")})
        if (shown.status, text) != (200, f"mine-{n}") and time.monotonic() - begun < 1:
            raise Failed(f"b answered {shown.status} {text[:80]} for what a has queued")
    for server in fleet.nodes.values():
        server.network("auto")


def forget(fleet):
    """Stops b, and takes it off the list."""
    a = fleet.nodes["a"]
    fleet.nodes["b"].stop(keep=True)
    until(lambda: [n["state"] for n in a.call("GET", "/v1/fleet/nodes")["items"] if n["name"] == "b"] == ["gone"], 40, "b is gone")
    subprocess.run([a.binary, "fleet", "forget", "b", "--config", f"{a.scratch}/rockpool.yaml"], check=True)
    if [n["name"] for n in a.call("GET", "/v1/fleet/nodes")["items"]] != ["a"]:
        raise Failed("b is still on the list")
