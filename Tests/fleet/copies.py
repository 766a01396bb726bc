"""What one gateway finds out of date is not fresh at another. Each returns what was measured, or raises `Failed`."""

import subprocess
from urllib.parse import quote

from decided import thing
from fleet import Fleet, until
from holding import Failed
from postgres import Cluster


def known_elsewhere(given):
    """S25: an online write and a purge at one gateway reach the fresh copies of another; a gateway that is gone is forgotten."""
    fleet = Fleet(given.binary, Cluster())
    fleet.upstream.lifetime = 600
    path = "/things/1"
    fleet.upstream.documents[path] = thing(1, "first")

    def read(node):
        """The title that a gateway shows, and whether it asked the upstream."""
        before = fleet.upstream.reads
        status, text = fleet.ask(node, "GET", path)
        if status != 200:
            raise Failed(f"{node} answered {status}")
        return "second" in text, fleet.upstream.reads > before

    for node in "ab":
        read(node)
        if read(node)[1]:
            raise Failed(f"{node} has no fresh copy")
    status, _ = fleet.ask("a", "PUT", path, '{"id": "1", "title": "second"}', {"Content-Type": "application/json"})
    if status != 200:
        raise Failed(f"the online write was answered {status}")
    write = until(lambda: read("b")[0], 5, "b shows what was written at a")
    if read("b")[1]:
        raise Failed("the new copy of b is not fresh")
    fleet.nodes["a"].call("DELETE", f"/v1/cache?url={quote(f'http://127.0.0.1:{fleet.upstream.port}{path}', safe='')}")
    purge = until(lambda: read("b")[1], 5, "b has lost what was purged at a")
    fleet.nodes["b"].stop(keep=True)
    a = fleet.nodes["a"]
    until(lambda: [n["state"] for n in a.call("GET", "/v1/fleet/nodes")["items"] if n["name"] == "b"] == ["gone"], 40, "b is gone")
    subprocess.run([a.binary, "fleet", "forget", "b", "--config", f"{a.scratch}/rockpool.yaml"], check=True)
    if [n["name"] for n in a.call("GET", "/v1/fleet/nodes")["items"]] != ["a"]:
        raise Failed("b is still on the list")
    return f"a write was known elsewhere after {write:.1f} s, a purge after {purge:.1f} s"
