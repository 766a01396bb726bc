"""page: what a browser shows of a fleet. Skipped without Chromium."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from agreed import KEY, change, differing
from fleet import Fleet, until
from holding import Failed
from postgres import Cluster


def shown(given):
    """page: the dashboard of one gateway lists the nodes of its fleet, names settings that differ, and says when the database is away."""
    browser = shutil.which("chromium")
    if browser is None:
        return "nothing: Chromium is not installed (make deps-test)"
    database = Cluster()
    fleet = Fleet(given.binary, database)
    page = content(browser, fleet.nodes["a"], "Lease renewed")
    rows = re.findall(r'data-name="Node">(\w+)</th><td data-name="State"><span class="tag (\w+)">(\w+)<', page)
    if rows != [("a", "good", "live"), ("b", "good", "live")]:
        raise Failed(f"the nodes on the page: {rows}")
    change(fleet.nodes["b"], "max_processing: 2s", "max_processing: 3s")
    until(lambda: differing(fleet.nodes["a"]), 15, "the settings differ")
    if f"b: {KEY}" not in content(browser, fleet.nodes["a"], KEY):
        raise Failed("the page does not say whose settings differ")
    database.kill()
    until(lambda: fleet.nodes["a"].call("GET", "/v1/status")["fleet"]["database"] == "away", 20, "the database is away")
    words = "The fleet's database is away"
    if words not in content(browser, fleet.nodes["a"], words):
        raise Failed("the page does not say that the database is away")
    return "2 nodes, what differs, and the absence of their database"


def content(browser, server, wanted):
    """The page once it has the wanted words, or ten seconds later."""
    with Tab(browser) as tab:
        return tab.html(f"http://127.0.0.1:{server.admin}/", wanted)


class Tab:
    """A page of a headless Chromium, by the DevTools protocol over two pipes: one JSON message, one NUL."""

    def __init__(self, browser):
        self.profile = tempfile.mkdtemp(prefix="rp-page-")
        words = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        words += [f"--user-data-dir={self.profile}", "--remote-debugging-pipe"]
        (theirs, self.input), (self.output, back) = os.pipe(), os.pipe()
        # The browser reads from 3 and writes to 4.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (theirs, back)]

        def connect():
            for number, end in enumerate(ends, 3):
                os.dup2(end, number)

        self.process = subprocess.Popen(words, stderr=subprocess.DEVNULL, preexec_fn=connect, close_fds=False)
        for end in (theirs, back, *ends):
            os.close(end)
        self.count, self.rest = 0, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.input)
        os.close(self.output)
        shutil.rmtree(self.profile, ignore_errors=True)

    def html(self, url, wanted):
        target = self.call("Target.createTarget", url=url)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        script, text = "[document.body?.innerText, document.documentElement?.outerHTML].join()", ""
        for _ in range(50):
            time.sleep(0.2)
            answer = self.call("Runtime.evaluate", session, expression=script)
            text = answer.get("result", {}).get("value", "")
            if wanted in text:
                break
        return text

    def call(self, method, session=None, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self.input, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                part = os.read(self.output, 65536)
                if not part:
                    raise Failed("the browser has ended")
                self.rest += part
            line, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.count:
                # A page that is loading cannot be asked.
                return answer.get("result", {})
