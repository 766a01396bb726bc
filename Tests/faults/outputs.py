"""All output of the server: its logs, responses, files, and the output of its commands."""

import http.client
import os
import re
import subprocess
import threading
from pathlib import Path
from urllib.parse import quote

from server import Server

PAGES = Path(__file__).resolve().parents[2] / "Sources/AdminPages"


class Watched(Server):
    """A server with logs at the finest level, an access log, and an event listener from its start.

    `credentials` are the field lines of its writes: a status document is given only to the sender of its write."""

    def __init__(self, binary, origin, *, access="json", credentials=(), **settings):
        self.said, self.events, self.credentials = bytearray(), bytearray(), ("", *credentials)
        # A crash must print everything that Swift can report.
        environment = {"ROCKPOOL_LOG_ACCESS": access, "SWIFT_BACKTRACE": "enable=yes,color=no,symbolicate=off,timeout=20s"}
        super().__init__(binary, origin, command=["sh", "-c", 'exec "$@" --log-level trace', "sh"], environment=environment, **settings)

    def start(self):
        seconds = super().start()
        threading.Thread(target=self.drain, args=(self.process.stdout,), daemon=True).start()
        threading.Thread(target=self.listen, daemon=True).start()
        return seconds

    def drain(self, pipe):
        try:
            while data := os.read(pipe.fileno(), 65536):
                self.said += data
        except (OSError, ValueError):
            pass

    def listen(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin)
        try:
            connection.request("GET", "/v1/events")
            answer = connection.getresponse()
            while data := answer.read1(65536):
                self.events += data
        except (OSError, http.client.HTTPException, ValueError):
            pass


def got(port, path, line=""):
    """A complete response, as any local process gets it: with the field of `line` alone."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers=dict([line.strip().split(": ", 1)] if line else []))
        answer = connection.getresponse()
        return f"{answer.status} {answer.getheaders()}\n".encode() + answer.read()
    finally:
        connection.close()


def answers(server):
    """Each GET of `openapi.yaml`, with all possible parameters."""
    text = (PAGES / "openapi.yaml").read_text()
    paths = [path for path, rest in re.findall(r"(?m)^  (/\S*):\n((?:    .*\n)+)", text) if "    get:" in rest and path != "/v1/events"]
    operations = [entry["id"] for entry in server.operations()]
    conflicts = [entry["id"] for entry in server.call("GET", "/v1/conflicts?state=all")["items"]]
    urls = [quote(entry["url"], safe="") for entry in server.call("GET", "/v1/cache?limit=1000")["items"]]
    for path in paths:
        variants = [path]
        if "{id}" in path:
            variants = [path.replace("{id}", one) for one in (operations if "operations" in path else conflicts)]
        elif path in ("/v1/cache/entry", "/v1/cache/explain"):
            variants = [f"{path}?url={url}" for url in urls]
        elif path in ("/v1/operations", "/v1/conflicts"):
            variants = [path, path + "?state=all&limit=500"]
        elif path == "/v1/operations/export":
            variants = [path + f"?state=all&format={kind}" for kind in ("jsonl", "curl", "har")]
        elif "{file}" in path:
            variants = [path.replace("{file}", file.name) for file in (PAGES / "dashboard").iterdir()]
        for variant in variants:
            yield f"GET {path}", got(server.admin, variant)
    for one in operations:
        documents = (got(server.gateway, f"/.well-known/rockpool/operations/{one}", line) for line in server.credentials)
        document = next((document for document in documents if document.startswith(b"200 ")), None)
        if document is None:
            raise AssertionError(f"no credential opens the status document of {one}")
        yield "status document", document


def printed(server):
    """The output of the commands, for people and for programs; for each stored path, and for an operation in each state."""
    urls = list({entry["url"].split("?")[0]: entry["url"] for entry in server.call("GET", "/v1/cache?limit=1000")["items"]}.values())
    operations = list({(entry["state"], entry["method"]): entry["id"] for entry in server.operations()}.values())
    conflicts = [entry["id"] for entry in server.call("GET", "/v1/conflicts?state=all")["items"]][:2]
    commands = [
        ["config", "check"],
        ["config", "show"],
        ["doctor"],
        ["status"],
        ["stats"],
        ["entities"],
        ["network"],
        ["sync", "log"],
        ["ca", "show"],
        ["env"],
        ["storage-cleanup", "--dry-run"],
        ["cache", "ls"],
        ["outbox", "ls", "--state", "all"],
        ["conflicts", "ls"],
    ]
    commands += [["outbox", "export", "--state", "all", "--format", kind] for kind in ("jsonl", "curl", "har")] + [["cache", "export", "-"]]
    commands += [["outbox", "show", one] for one in operations] + [["conflicts", "show", one] for one in conflicts]
    commands += [["cache", word, url] for word in ("show", "explain") for url in urls]
    commands += [command + ["--format", "json"] for command in commands if "export" not in command and command[0] not in ("env", "ca")]
    for command in commands:
        done = subprocess.run(
            [server.binary, *command, "--config", f"{server.scratch}/rockpool.yaml"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            env={**os.environ, "HOME": server.scratch},
        )
        yield f"cli {' '.join(command[:2])}", done.stdout + done.stderr


def written(server):
    """The bytes of every file."""
    for path in Path(server.scratch).rglob("*"):
        if path.is_file() and not path.is_symlink() and path.name != "log":
            yield f"file {path.relative_to(server.scratch)}", path.read_bytes()


def everything(server):
    """(place, bytes) of all output of a running server."""
    yield "log", server.log.encode()
    yield "access log", bytes(server.said)
    yield "events", bytes(server.events)
    for pid in {server.process.pid, server.pid}:
        yield "command line", Path(f"/proc/{pid}/cmdline").read_bytes()
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in Path(thread, "children").read_text().split():
                yield "a child's environment", Path(f"/proc/{child}/environ").read_bytes()
    yield from answers(server)
    yield from printed(server)
    yield from written(server)
