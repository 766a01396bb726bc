"""Programs that read and write files by HTTP: ccache, duplicity, dvc."""

import os

from place import found, free_ports, python_with, scene, shown
from reads import folder, tree


def shelf(root):
    """Plays a server that takes files, as ccache and dvc use one."""
    served = folder(root)

    def play(asked):
        path = root + asked.path
        if asked.method in ("PUT", "POST"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(asked.body)
            return 201, {}, b""
        if asked.method == "DELETE":
            if os.path.exists(path):
                os.remove(path)
            return 204, {}, b""
        return served(asked)

    return play


@scene("ccache", "cc")
def ccache(place):
    """What one machine has compiled another gets, also away; a compilation never fails, and its result is that of the compiler."""
    site = place.site(shelf(place.directory + "/shelf"))
    place.begin(site.port)

    def compiled(number, machine, url=None):
        place.write("tide.c", f"int tide(void) {{ return {number}; }}\n")
        own = {"CCACHE_DIR": os.path.join(place.directory, machine), "CCACHE_LOGFILE": place.directory + "/" + machine + ".log"}
        own["CCACHE_REMOTE_STORAGE"] = (url or place.url) + "|layout=bazel"
        status, said = place.run(found("ccache"), "cc", "-c", "tide.c", "-o", "tide.o", environment=own)
        place.check(status == 0, f"{machine} compiles: {said[-300:]}")
        with open(place.directory + "/tide.o", "rb") as file:
            content = file.read()
        place.run(found("cc"), "-c", "tide.c", "-o", "direct.o")
        with open(place.directory + "/direct.o", "rb") as file:
            place.check(file.read() == content, f"{machine} gets what the compiler makes of {number}")
        return "direct_cache_hit" in place.read(machine + ".log") or "preprocessed_cache_hit" in place.read(machine + ".log")

    compiled(1, "first")
    place.check(compiled(1, "second"), "online, another machine finds it")
    place.away()
    place.check(compiled(1, "third"), "away, a further machine finds it")
    place.check(not compiled(2, "fourth"), "away, something new is compiled")
    print(f"  away: waiting are {[(row['method'], row['state']) for row in place.operations()]}")
    place.back()
    place.online()
    rest = place.settled()
    place.check(rest == [], f"back, all is delivered: {shown(rest)}")
    with place.flapping():
        for number in range(3, 9):
            compiled(number, f"machine-{number}")
    place.settled()
    for number in range(1, 9):
        compiled(number, f"last-{number}", f"http://127.0.0.1:{site.port}")


@scene("dvc")
def dvc(place):
    """Data that was pulled before is pulled away; a push that dvc reports as done arrives, one that it reports as failed never does."""
    site = place.site(shelf(place.directory + "/shelf"))
    place.begin(site.port)

    def run(where, *words):
        own = {
            "DVC_NO_ANALYTICS": "1",
            "DVC_SITE_CACHE_DIR": place.directory + "/site",
            "DVC_GLOBAL_CONFIG_DIR": place.directory + "/global",
        }
        return place.run(found("dvc"), "--cd", where, *words, environment=own)

    def project(name, url):
        os.makedirs(place.directory + "/" + name)
        run(name, "init", "-q", "--no-scm")
        run(name, "remote", "add", "-q", "-d", "u", url + "/data")

    def add(text):
        place.write("work/tides", f"{text}\n" * 999)
        status, said = run("work", "add", "-q", "tides")
        place.check(status == 0, "dvc adds: " + said[-300:])

    def pulled(name, url):
        project(name, url)
        place.write(name + "/tides.dvc", place.read("work/tides.dvc"))
        status, said = run(name, "pull", "-q")
        return place.read(name + "/tides") if status == 0 else (status, said[-300:])

    project("work", place.url)
    add("low water")
    status, said = run("work", "push", "-q")
    place.check(status == 0 and tree(place.directory + "/shelf"), f"online, a push: {said[-400:]}")
    text = place.read("work/tides")
    place.check(pulled("online", place.url) == text, "online, a pull")
    place.away()
    said = pulled("away", place.url)
    place.check(said == text, f"away, a pull: {said}")
    before = tree(place.directory + "/shelf")
    add("high water")
    status, said = run("work", "push", "-q")
    print(f"  away: a push ends with {status}; waiting are {[(row['method'], row['state']) for row in place.operations()]}")
    place.back()
    place.online()
    place.settled()
    place.check((tree(place.directory + "/shelf") != before) == (status == 0), "back, what has arrived is what was reported as done")
    place.check(run("work", "push", "-q")[0] == 0, "back, a push")
    said = pulled("back", f"http://127.0.0.1:{site.port}")
    place.check(said == place.read("work/tides"), f"back, a pull: {said}")


DAV = """
import sys
from cheroot import wsgi
from wsgidav.wsgidav_app import WsgiDAVApp
port, root = sys.argv[1:]
settings = {"provider_mapping": {"/": root}, "simple_dc": {"user_mapping": {"*": {"ann": {"password": "x"}}}}, "verbose": 1}
settings["http_authenticator"] = {"accept_basic": True, "accept_digest": False, "default_to_digest": False}
wsgi.Server(("127.0.0.1", int(port)), WsgiDAVApp(settings)).start()
"""


@scene("duplicity", modules=("wsgidav", "cheroot", "lxml"))
def duplicity(place):
    """A backup that duplicity reports as done is whole at the server; what was restored before is restored away."""
    (port,) = free_ports(1)
    os.makedirs(place.directory + "/shelf/pool")
    place.write("dav.py", DAV)
    place.start(python_with("wsgidav", "lxml"), "dav.py", str(port), place.directory + "/shelf", ready=f"http://127.0.0.1:{port}/")
    routes = [{"match": f"{method} /**", "cache": "body"} for method in ("PROPFIND", "OPTIONS")]
    # The server sends a page with its 201, and duplicity takes 202 for a failure.
    place.begin(port, {"routes": [*routes, {"match": "/**", "offline_response": "optimistic"}]})
    options = ["--no-encryption", "--num-retries=2", "--no-print-statistics", "-v", "warning"]

    def run(*words, machine="first", within=90):
        return place.run(found("duplicity"), *words, *options, "--archive-dir", f"{place.directory}/{machine}", within=within)

    def url(of):
        return f"webdav://ann:x@127.0.0.1:{of}/pool"

    def restored(name, of=None):
        status, said = run("restore", url(of or place.gateway), name, machine="machine-" + name)
        return place.read(name + "/tides") if status == 0 else said[-400:]

    place.write("data/tides", "low water\n" * 99)
    status, said = run("full", "data", url(place.gateway))
    place.check(status == 0 and tree(place.directory + "/shelf", ".gz"), f"online, a backup: {said[-400:]}")
    low = place.read("data/tides")
    place.check(restored("online") == low, "online, a restore")
    place.away()
    said = restored("away")
    place.check(said == low, f"away, a restore: {said}")
    before = tree(place.directory + "/shelf")
    place.write("data/tides", "high water\n" * 99)
    status, said = run("incremental", "data", url(place.gateway))
    waiting = [(row["method"], row["state"]) for row in place.operations()]
    print(f"  away: a backup ends with {status}; waiting are {waiting}: {said.strip()[-200:]}")
    place.back()
    place.online()
    place.settled()
    if status == 0:
        place.check(restored("later", port) == place.read("data/tides"), "back, a backup that was reported as done is whole")
    else:
        place.check(tree(place.directory + "/shelf") == before, "back, nothing of a failed backup arrives")
    place.write("data/tides", "flood\n" * 99)
    status, said = run("incremental", "data", url(place.gateway))
    said = restored("back", port) if status == 0 else said
    place.check(said == place.read("data/tides"), f"back, a backup: {said[-400:]}")


SCENES = [ccache, dvc, duplicity]
