"""What a scene of a program that reads is made of: a folder that is served, and the order of its steps."""

import email.utils
import hashlib
import os
import urllib.parse

from place import shown

KINDS = {".json": "application/json", ".xml": "text/xml", ".html": "text/html", ".gz": "application/gzip", ".tif": "image/tiff"}


def folder(root):
    """Plays a server of files, with validators and single ranges."""

    def play(asked):
        path = root + urllib.parse.unquote(urllib.parse.urlsplit(asked.path).path)
        if asked.method not in ("GET", "HEAD") or not os.path.isfile(path):
            return (404 if asked.method in ("GET", "HEAD") else 405), {}, b""
        with open(path, "rb") as file:
            content = file.read()
        fields = {
            "Content-Type": KINDS.get(os.path.splitext(path)[1], "application/octet-stream"),
            "ETag": f'"{hashlib.sha256(content).hexdigest()[:16]}"',
            "Last-Modified": email.utils.formatdate(os.path.getmtime(path), usegmt=True),
            "Accept-Ranges": "bytes",
        }
        if asked.fields.get("If-None-Match") == fields["ETag"]:
            return 304, fields, b""
        asks = asked.fields.get("Range", "")
        if asks.startswith("bytes=") and "," not in asks and asked.fields.get("If-Range") in (None, fields["ETag"]):
            first, _, last = asks[6:].partition("-")
            first, last = (
                (int(first), min(int(last or len(content)), len(content) - 1)) if first else (len(content) - int(last), len(content) - 1)
            )
            if first >= len(content):
                return 416, {**fields, "Content-Range": f"bytes */{len(content)}"}, b""
            return 206, {**fields, "Content-Range": f"bytes {first}-{last}/{len(content)}"}, content[first : last + 1]
        return 200, {**fields, "Content-Length": str(len(content))}, content

    return play


def tree(path, *endings):
    """Digests of the files with these endings below a folder, by their names."""
    kept = {}
    for above, _, names in os.walk(path):
        for name in names:
            if name.endswith(endings or ("",)):
                with open(os.path.join(above, name), "rb") as file:
                    kept[os.path.relpath(os.path.join(above, name), path)] = hashlib.sha256(file.read()).hexdigest()
    return kept


def holds(place, site, read, change=None, upstream=None, refused=None, is_sure=True, turns=5):
    """Plays the steps: `read(url, into)` returns what a program got with an empty folder, or the text of its failure.

    Online and away it gets what it gets directly, afterwards what has changed, and over a line that comes and goes that or nothing.
    `refused(url)` writes, and returns whether its program has failed. Without `is_sure` the program may fail away.
    """
    number = 0

    def got(url):
        nonlocal number
        number += 1
        said = read(url, f"{place.directory}/into-{number}")
        return said

    port = site if isinstance(site, int) else site.port
    direct = f"http://127.0.0.1:{port}"
    place.begin(port, upstream)
    expected = got(direct)
    if not place.check(not isinstance(expected, str) and expected, f"directly: {str(expected)[-400:]}"):
        return
    for step in ("online", "online once more", "away", "away once more"):
        if step == "away":
            place.away()
        said = got(place.url)
        is_missing = isinstance(said, str) and "away" in step and not is_sure
        place.check(said == expected or is_missing, f"{step}: {str(said)[-400:]}")
    place.check(not refused or refused(place.url), "away, a write fails")
    place.check(place.operations() == [], f"away, nothing is queued: {shown(place.operations())}")
    place.back()
    place.online()
    place.check(got(direct) == expected, "back, nothing has arrived")
    if change:
        change()
        expected = got(direct)
        said = got(place.url)
        place.check(said == expected, f"back, what has changed: {str(said)[-400:]}")
    with place.flapping():
        said = [got(place.url) for _ in range(turns)]
    failed = [one for one in said if isinstance(one, str)]
    place.check(all(one == expected for one in said if not isinstance(one, str)), f"over a line that comes and goes: {said}")
    print(f"  over a line that comes and goes: {len(said) - len(failed)} of {len(said)} reads succeed")
    said = got(place.url)
    place.check(said == expected, f"in the end: {str(said)[-400:]}")
