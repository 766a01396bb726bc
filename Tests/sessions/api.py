"""A notes API with ETags, conditions, idempotency keys and outages, on a thread for each connection (RFC 9110 §8.8, §13.1)."""

import contextlib
import json
import re
import socket
import threading
import time

FIELDS = ("title", "body", "count", "done")


class NotesAPI:
    """`/v1/notes`, `/v1/notes/{id}`, `/v1/notes/{id}/toggle` and `/healthz`. Its data outlives an outage."""

    def __init__(self, port, *, caching="no-cache", tags=True, answers="representation"):
        self.port, self.caching, self.tags, self.answers = port, caching, tags, answers
        self.notes, self.versions, self.keys, self.next = {}, {}, {}, 0
        # Each effect: the note's id, the method, the note afterwards.
        self.effects, self.log = [], []
        # The number of coming writes that lose their answer after their effect.
        self.losing = 0
        self.lock, self.listener, self.sockets = threading.RLock(), None, set()

    # --- the line

    def open(self):
        if self.listener:
            return
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.listener = listener
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def close(self):
        """Ends the listener and every connection."""
        with self.lock:
            listener, self.listener = self.listener, None
            ended, self.sockets = self.sockets, set()
        for one in [listener, *ended]:
            if one:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                if self.listener is not listener:
                    connection.close()
                    return
                self.sockets.add(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError, ValueError), connection, connection.makefile("rb") as stream:
            while line := stream.readline().decode("latin-1"):
                method, target, _ = line.split(" ", 2)
                fields = {}
                while (field := stream.readline().decode("latin-1").strip()) != "":
                    name, _, value = field.partition(":")
                    fields[name.lower()] = value.strip()
                body = stream.read(int(fields.get("content-length", 0)))
                with self.lock:
                    if connection not in self.sockets:
                        return
                    reply, is_lost = self.arrive(method, target, fields, body)
                if is_lost:
                    return
                connection.sendall(reply)

    # --- requests

    def arrive(self, method, target, fields, body):
        if target == "/healthz":
            return self.message(204), False
        self.log.append((time.monotonic(), method, target, fields.get("if-match"), fields.get("if-none-match")))
        key = fields.get("idempotency-key")
        if method != "GET" and key in self.keys:
            return self.keys[key], False
        effects = len(self.effects)
        reply = self.answer(method, target.partition("?")[0], fields, json.loads(body) if body else {})
        if len(self.effects) == effects:
            return reply, False
        if key:
            self.keys[key] = reply
        self.losing, is_lost = max(self.losing - 1, 0), self.losing > 0
        return reply, is_lost

    def answer(self, method, path, fields, body):
        if path == "/v1/notes":
            if method == "GET":
                return self.read(list(self.notes.values()), f'"all-{len(self.effects)}"', fields)
            if method == "POST":
                self.next += 1
                return self.change(str(self.next), method, {**self.blank, **body}, created=True)
            return self.message(405)
        found = re.fullmatch(r"/v1/notes/([^/]+)(/toggle)?", path)
        note = self.notes.get(found[1]) if found else None
        if note is None:
            return self.message(404)
        tag = self.tag(found[1])
        if method == "GET":
            return self.read(note, tag, fields)
        if self.tags and "if-match" in fields and tag not in fields["if-match"]:
            return self.message(412)
        match (method, bool(found[2])):
            case ("POST", True):
                return self.change(found[1], "toggle", {**note, "done": not note["done"]})
            case ("PUT", False):
                return self.change(found[1], method, {**self.blank, **body})
            case ("PATCH", False):
                return self.change(found[1], method, {**note, **body})
            case ("DELETE", False):
                del self.notes[found[1]]
                self.effects.append((found[1], method, None))
                return self.message(204)
        return self.message(405)

    @property
    def blank(self):
        return {"title": "", "body": "", "count": 0, "done": False}

    def tag(self, note):
        return f'"{note}-{self.versions[note]}"'

    def change(self, name, method, note, created=False):
        with self.lock:
            self.notes[name] = {"id": name, **{member: value for member, value in note.items() if member != "id"}}
            self.versions[name] = self.versions.get(name, 0) + 1
            self.effects.append((name, method, dict(self.notes[name])))
        lines = [f"Location: /v1/notes/{name}"] if created else []
        if self.tags and self.answers != "no tag":
            lines.append(f"ETag: {self.tag(name)}")
        if self.answers == "nothing" and not created:
            return self.message(204, lines)
        return self.message(201 if created else 200, lines, self.notes[name])

    def read(self, value, tag, fields):
        lines = [f"Cache-Control: {self.caching}"] if self.caching else []
        if self.tags:
            lines.append(f"ETag: {tag}")
            if fields.get("if-none-match") == tag:
                return self.message(304, lines)
        return self.message(200, lines, value)

    @staticmethod
    def message(status, lines=(), value=None):
        body = b"" if value is None else json.dumps(value).encode()
        lines = [f"HTTP/1.1 {status} X", *lines]
        if value is not None:
            lines.append("Content-Type: application/json")
        if status not in (204, 304):
            lines.append(f"Content-Length: {len(body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body
