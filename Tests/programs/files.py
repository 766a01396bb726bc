"""Programs that write files: twine, restic, zsync's reads of ranges, and git."""

import json
import os
import random
import re
import sys
import urllib.parse
import zipfile

from place import HERE, found, free_ports, scene, shown


def wheel(place, name, version):
    """Makes a wheel with nothing in it."""
    path = place.directory + f"/{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info/"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(about + "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(about + "WHEEL", "Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(about + "RECORD", "")
    return path


@scene("twine", "pypi-server")
def twine(place):
    """An upload that the index refuses after an outage does not hold the later ones, and each exit status is true."""
    os.makedirs(place.directory + "/index")
    (port,) = free_ports(1)
    command = [found("pypi-server"), "run", "-i", "127.0.0.1", "-p", str(port), "-P", ".", "-a", ".", place.directory + "/index"]
    place.start(*command, ready=f"http://127.0.0.1:{port}/")
    place.begin(port)

    def upload(name, version="1.0", user="ann"):
        options = ["--non-interactive", "--disable-progress-bar", "--repository-url", place.url + "/", "-u", user, "-p", "x"]
        return place.run(found("twine"), "upload", *options, wheel(place, name, version))[0]

    def indexed():
        return {one.split("-")[0] for one in os.listdir(place.directory + "/index")}

    place.check(upload("first") == 0 and "first" in indexed(), "online, an upload arrives")
    place.check(upload("first") != 0, "online, a second upload of it is refused")
    place.away()
    said = {name: upload(name) for name in ("first", "second")}
    place.check(said["first"] == said["second"] == 0, f"away, uploads are accepted: {said}")
    place.back()
    place.online()
    place.eventually("what was accepted arrives", lambda: "second" in indexed(), 20)
    rows = place.settled()
    place.check([row["state"] for row in rows] in (["conflicted"], ["dead"]), f"the refused one waits for a person: {shown(rows)}")
    for name, user in (("third", "ann"), ("fourth", "bob")):
        status = upload(name, user=user)
        place.check(status == 0 and name in indexed(), f"after a refusal, an upload of {user} ends with {status}; there: {indexed()}")
    place.check(upload("third") != 0, "after a refusal, another refusal is told at once")
    place.check(len(place.operations()) == len(rows), f"nothing else is queued: {shown(place.operations())}")


def repository(place):
    """Plays restic's REST server, version 2 of its protocol; returns its files."""
    kept = {}

    def play(asked):
        path = urllib.parse.urlsplit(asked.path).path
        if path == "/" and asked.method == "POST":
            return 200, {}, ""
        if asked.method == "POST":
            if path in kept:
                return 403, {}, ""
            kept[path] = asked.body
            return 200, {}, ""
        if asked.method == "DELETE":
            return (200, {}, "") if kept.pop(path, None) is not None else (404, {}, "")
        if path.endswith("/"):
            names = [{"name": name[len(path) :], "size": len(body)} for name, body in list(kept.items()) if name.startswith(path)]
            return 200, {"Content-Type": "application/vnd.x.restic.rest.v2"}, json.dumps(names)
        if path not in kept:
            return 404, {}, ""
        body, fields = kept[path], {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
        if asked.method == "HEAD":
            return 200, {**fields, "Content-Length": str(len(body))}, b""
        if bounds := re.fullmatch(r"bytes=(\d+)-(\d*)", asked.fields.get("Range", "")):
            first, last = int(bounds[1]), min(int(bounds[2] or len(body) - 1), len(body) - 1)
            return 206, {**fields, "Content-Range": f"bytes {first}-{last}/{len(body)}"}, body[first : last + 1]
        return 200, fields, body

    return place.site(play), kept


@scene("restic")
def restic(place):
    """A backup is done or has failed; away, no list from before an own write passes for the present one."""
    site, kept = repository(place)
    place.begin(site.port)
    place.write("data/one", "low water\n" * 100)

    def run(*words, within=60):
        options = ["-r", f"rest:{place.url}/", "--no-cache", "--json"]
        return place.run(found("restic"), *options, *words, within=within, environment={"RESTIC_PASSWORD": "x"})

    def snapshots():
        status, said = run("snapshots", "--no-lock", within=20)
        return status, len(json.loads(said.strip().splitlines()[-1])) if status == 0 else 0

    def in_kind(kind):
        return [name for name in kept if name.startswith(f"/{kind}/")]

    status, said = run("init")
    place.check(status == 0, "init: " + said[-300:])
    for count in (1, 2):
        place.write("data/two", "high water\n" * count)
        status, said = run("backup", "data")
        place.check(status == 0 and len(in_kind("snapshots")) == count, f"backup {count}: {said[-300:]}")
        place.check(snapshots() == (0, count), f"snapshots after backup {count}: {snapshots()}")
    place.write("data/two", "flood\n")
    place.check(run("backup", "data")[0] == 0, "the last backup")
    before = dict(kept)
    place.away()
    accept = "application/vnd.x.restic.rest.v2"
    for kind in ("snapshots", "locks", "index"):
        status, fields, content = place.get(f"/{kind}/", Accept=accept)
        stored = {one["name"] for one in json.loads(content)} if status == 200 else set()
        true = {name.split("/")[2] for name in in_kind(kind)}
        is_marked = status == 200 and fields.get("Rockpool-Dirty") == "1"
        place.check(status != 200 or stored == true or is_marked, f"away, /{kind}/ is older than an own write, and says so")
    status, count = snapshots()
    print(f"  away: snapshots ends with {status} and shows {count} of 3")
    status, said = run("backup", "data", within=15)
    place.check(status != 0, f"away, a backup fails: {said[-200:]}")
    run("forget", "--keep-last", "1", within=10)
    place.check(all(row["method"] == "DELETE" for row in place.operations()), f"no file is queued: {shown(place.operations())}")
    place.back()
    place.online()
    place.settled()
    place.check(kept == before, f"nothing arrives afterwards: {set(kept) ^ set(before)}")
    status, said = run("forget", "--keep-last", "1", "--prune", within=60)
    place.check(status == 0 and len(in_kind("snapshots")) == 1, f"back, forget: {status} {said[-300:]}")
    place.check(run("check")[0] == 0, "back, the repository is whole")


def ranged(content, tag):
    """Plays a file of which several ranges can be read."""

    def play(asked):
        fields = {"ETag": f'"{tag}"', "Content-Type": "application/octet-stream", "Accept-Ranges": "bytes", "Cache-Control": "max-age=600"}
        asks = asked.fields.get("Range", "")
        if asked.fields.get("If-None-Match") == f'"{tag}"':
            return 304, fields, b""
        if not asks.startswith("bytes="):
            return 200, fields, content
        bounds = [one.split("-") for one in asks[6:].replace(" ", "").split(",")]
        spans = [(int(first), min(int(last or len(content) - 1), len(content) - 1)) for first, last in bounds]
        if len(spans) == 1:
            first, last = spans[0]
            return 206, {**fields, "Content-Range": f"bytes {first}-{last}/{len(content)}"}, content[first : last + 1]
        parts = b"".join(
            f"\r\n--cut\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes {a}-{b}/{len(content)}\r\n\r\n".encode()
            + content[a : b + 1]
            for a, b in spans
        )
        return 206, {**fields, "Content-Type": "multipart/byteranges; boundary=cut"}, parts + b"\r\n--cut--\r\n"

    return play


@scene("zsync", "zsyncmake")
def zsync(place):
    """zsync asks for twenty ranges at once: of what is stored, it gets them, also away."""
    chance = random.Random(7)
    new = chance.randbytes(1_000_000)
    old = bytearray(new)
    for place_of_change in range(5000, 1_000_000, 17_000):
        old[place_of_change] ^= 255
    place.write("new", new)
    place.write("old", bytes(old))
    place.run(found("zsyncmake"), "-b", "1024", "-u", "disk", "-o", "disk.zsync", "new")
    file = ranged(new, "7")
    with open(place.directory + "/disk.zsync", "rb") as made:
        index = made.read()

    def play(asked):
        if asked.path.startswith("/disk.zsync"):
            return 200, {"Content-Type": "application/x-zsync", "ETag": '"z"'}, index
        return file(asked)

    site = place.site(play)
    place.begin(site.port)

    def run(step):
        status, said = place.run(found("zsync"), *"-q -i old -o made -u".split(), place.url + "/", place.url + "/disk.zsync", within=30)
        made = place.directory + "/made"
        is_whole = False
        if os.path.exists(made):
            with open(made, "rb") as file:
                is_whole = file.read() == new
            os.remove(made)
        place.check(status == 0 and is_whole, f"{step}: status {status}, whole {is_whole}: {said[-300:]}")

    run("with nothing stored")
    place.check(place.get("/disk")[0] == 200, "the whole is read")
    place.eventually("the whole is stored", lambda: "hit" in (place.get("/disk", Range="bytes=0-1")[1].get("Cache-Status") or ""))
    run("with the whole stored")
    place.away()
    run("away")


@scene("git")
def git(place):
    """A repository that was cloned before is cloned away; a push fails there, and what it has changed is fetched afterwards."""
    who = {f"GIT_{role}_{what}": text for role in ("AUTHOR", "COMMITTER") for what, text in (("NAME", "a"), ("EMAIL", "a@example.com"))}
    own = {**who, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}

    def git(*words):
        return place.run("git", *words, environment=own, within=30)

    git("init", "-q", "--bare", "-b", "main", "pool.git")
    git("-C", "pool.git", "config", "http.receivepack", "true")
    (port,) = free_ports(1)
    place.start(sys.executable, os.path.join(HERE, "git_server.py"), str(port), ready=f"http://127.0.0.1:{port}/")
    fetches = ("/pool.git/info/refs", "POST /pool.git/git-upload-pack")
    place.begin(port, {"routes": [{"match": match, "cache": "body"} for match in fetches]})

    def commit(subject):
        git("-C", "work", "commit", "-q", "--allow-empty", "-m", subject)
        return git("-C", "work", "push", "-q", "origin", "HEAD:main")

    def cloned(name):
        status, said = git("clone", "-q", place.url + "/pool.git", name)
        return git("-C", name, "log", "--format=%s")[1].split() if status == 0 else said

    git("clone", "-q", place.url + "/pool.git", "work")
    for number, subject in enumerate(("one", "two")):
        place.check(commit(subject)[0] == 0, f"online, a push of {subject}")
        log = ["two", "one"][1 - number :]
        place.check(cloned(f"online-{subject}") == log, f"online, a clone after the push of {subject}")
        place.away()
        there = cloned(f"away-{subject}")
        place.check(there == log, f"away, a clone: {there}")
        place.check(git("-C", "work", "push", "-q", "origin", "HEAD:other")[0] != 0, "away, a push fails")
        place.check(place.operations() == [], f"away, nothing is queued: {shown(place.operations())}")
        place.back()
        place.online()


SCENES = [twine, restic, zsync, git]
