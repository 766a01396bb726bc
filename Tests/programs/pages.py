"""Programs that read pages and feeds, and a wiki's client: newsboat, mwclient."""

import json
import subprocess
import urllib.parse

from place import found, python_with, scene, shown


def feed(*titles):
    items = "".join(f"<item><title>{title}</title><guid>{title}</guid><description>{title}</description></item>" for title in titles)
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>Tides</title><link>http://tides/</link>{items}</channel></rss>'


@scene("newsboat")
def newsboat(place):
    """A feed whose media type changes is news, and so is a feed whose first read fell behind a portal."""
    served = {"/typed": ("application/xml", feed("one")), "/fresh": ("text/html; charset=utf-8", "<html><body>Hotel: log in</body></html>")}

    def play(asked):
        if asked.method == "HEAD":
            return 200, {"Content-Type": "text/html"}, b""
        kind, content = served[asked.path]
        return 200, {"Content-Type": kind, "Cache-Control": "max-age=0"}, content

    place.begin(place.site(play).port)
    place.write("urls", "".join(f"{place.url}{path}\n" for path in served))
    place.write("config", "reload-time 600\n")

    def unread():
        options = ["-u", "urls", "-c", "cache.db", "-C", "config"]
        place.run(found("newsboat"), *options, "-x", "reload")
        return place.run(found("newsboat"), *options, "-x", "print-unread")[1].split()[0]

    place.check(unread() == "1", "the first read, one feed behind a portal")
    kinds = ("application/rss+xml", "text/xml", "application/xml; charset=utf-8", "application/atom+xml", "text/plain")
    for count, kind in enumerate(kinds, 2):
        served["/typed"] = kind, feed(*map(str, range(1, count)), "one")
        served["/fresh"] = "application/rss+xml", feed(*(f"fresh{n}" for n in range(1, count)))
        shown = unread()
        place.check(shown == str(count + count - 1), f"after {kind}: {shown} items, not {2 * count - 1}")
    place.check(place.reachability() == "online", "the upstream is online")
    place.away()
    place.check(unread() == str(4 * 2 + 3), "away, all is there")


def wiki():
    """Plays a wiki's api.php; returns it with the edits it got."""
    edits = []

    def play(asked):
        if asked.method == "HEAD":
            return 200, {}, b""
        body = asked.body.decode() if asked.method == "POST" else ""
        given = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(asked.path).query + "&" + body))
        said = {}
        if given.get("action") == "edit":
            edits.append(given["text"])
            said = {"edit": {"result": "Success", "title": given["title"], "newrevid": len(edits)}}
        elif "tokens" in given.get("meta", ""):
            said = {"query": {"tokens": {"csrftoken": "abc+\\"}}}
        elif "siteinfo" in given.get("meta", ""):
            said = {
                "query": {
                    "general": {"generator": "MediaWiki 1.35.0", "writeapi": "", "case": "first-letter"},
                    "namespaces": {"0": {"id": 0, "*": ""}},
                    "userinfo": {"id": 0, "name": "192.0.2.1", "anon": "", "groups": ["*"], "rights": ["read", "edit", "createpage"]},
                }
            }
        else:
            page = {"pageid": 1, "ns": 0, "title": "Tides", "touched": "2026-01-01T00:00:00Z", "lastrevid": len(edits), "length": 5}
            revision = {"timestamp": "2026-01-01T00:00:00Z", "slots": {"main": {"*": "old", "contentmodel": "wikitext"}}, "*": "old"}
            pages = {"1": {**page, "contentmodel": "wikitext", "protection": [], "revisions": [revision]}}
            said = {"query": {"pages": pages, "search": [{"title": "Tides"}]}}
        return 200, {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "private, max-age=0"}, json.dumps(said)

    return play, edits


WIKI = """
import mwclient, sys
host, pause, retries, *steps = sys.argv[1:]
try:
    site = mwclient.Site(host, path="/w/", scheme="http", force_login=False, max_retries=int(retries), retry_timeout=float(pause))
    page = site.pages["Tides"]
    page.text()
    print("read", flush=True)
    sys.stdin.readline()
    for step in steps:
        if step == "search":
            print(len(site.api("query", http_method="POST", list="search", srsearch="a")["query"]["search"]), flush=True)
        else:
            print(page.edit(step, "a summary")["result"], flush=True)
except Exception as error:
    print("failed", type(error).__name__, error, flush=True)
    sys.exit(1)
"""


def wiki_client(place, *steps, pause=1, retries=4, away=True):
    """Starts mwclient, and takes the line away after it has read. Returns status and output."""
    line = [python_with("mwclient"), "-c", WIKI, place.url.removeprefix("http://"), str(pause), str(retries), *steps]
    client = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    place.processes.append(client)
    first = client.stdout.readline()
    place.check(first == "read\n", "mwclient reads: " + first)
    if away:
        place.away()
    try:
        said = client.communicate("\n", timeout=45)[0]
    except subprocess.TimeoutExpired:
        client.kill()
        return None, client.communicate()[0]
    return client.returncode, said


@scene(modules=("mwclient",))
def mwclient(place):
    """An edit that mwclient reports as failed after its retries is one edit of the wiki, not five; a search by POST is no write."""
    play, edits = wiki()
    place.begin(place.site(play).port)
    place.check(wiki_client(place, "first", away=False) == (0, "Success\n") and edits == ["first"], f"online: {edits}")
    status, said = wiki_client(place, "second")
    print(f"  away: {status} {said.strip()[:120]}")
    waiting = place.operations()
    place.check(len(waiting) <= 1, f"away, one edit is one write: {len(waiting)}")
    place.back()
    place.online()
    place.settled()
    place.check(edits in (["first"], ["first", "second"]), f"one edit arrives once: {edits}")
    place.check(wiki_client(place, "search", away=False) == (0, "1\n"), "online, a search by POST")
    wiki_client(place, "search", retries=1)
    place.check(place.operations() == [], f"away, a search by POST is no write: {shown(place.operations())}")


@scene(modules=("mwclient",))
def mwclient_answered(place):
    """With a reply of the wiki's form an edit is done for mwclient, and arrives once."""
    play, edits = wiki()
    reply = {"status": 200, "type": "application/json", "body": '{"edit":{"result":"Success"}}'}
    place.begin(place.site(play).port, {"routes": [{"match": "POST /w/api.php", "offline_response": reply}]})
    place.check(wiki_client(place, "first", away=False) == (0, "Success\n"), "online: the token of the next edit is read")
    said = wiki_client(place, "low", "high")
    place.check(said == (0, "Success\nSuccess\n"), f"away, both edits are done for mwclient: {said}")
    place.back()
    place.online()
    place.settled()
    place.check(edits == ["first", "low", "high"], f"each arrives once, in order: {edits}")


SCENES = [newsboat, mwclient, mwclient_answered]
