"""A client of the notes API, with the state that it would see if it talked to the API alone and nobody else wrote."""

import http.client
import json

from api import FIELDS


class Broken(Exception):
    """A guarantee that did not hold; its text names the guarantee."""


class Reply:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body
        try:
            self.json = json.loads(body) if body else None
        except ValueError:
            self.json = None

    def __str__(self):
        names = ("etag", "cache-status", "rockpool-state", "rockpool-dirty", "rockpool-pending", "location", "proxy-status")
        shown = {name: value for name, value in self.fields.items() if name in names}
        return f"{self.status} {shown} {self.body[:300].decode(errors='replace')}"


class Client:
    """Sends requests to `server` and keeps `view`: each live note by the client's own name for it, without its id."""

    def __init__(self, name, server, chance):
        self.name, self.server, self.chance = name, server, chance
        self.view, self.paths, self.gone, self.tags = {}, {}, set(), {}
        self.written, self.unexplained, self.story = 0, 0, []
        # Notes with an action: their state may be served as `Rockpool-Dirty: 1`.
        self.acted = set()
        # True once an answer may have been lost: the API may already show a write that the proxy still has to deliver.
        self.is_in_doubt = False
        # The notes that were read or written after the last change of this view, for the name of a broken guarantee.
        self.was_read = {}

    def note(self, name, note):
        self.view[name], self.paths[name] = self.members(note), f"/v1/notes/{name}"

    @staticmethod
    def members(note):
        return {member: value for member, value in note.items() if member != "id"} if isinstance(note, dict) else note

    def send(self, method, path, body=None, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.gateway, timeout=30)
        fields = {name.replace("_", "-"): value for name, value in fields.items()}
        if body is not None:
            fields.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, None if body is None else json.dumps(body), fields)
            response = connection.getresponse()
            reply = Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        except (OSError, http.client.HTTPException) as error:
            raise Broken(f"availability: no answer to {method} {path}: {error!r}") from error
        finally:
            connection.close()
        self.story.append(f"{self.name}: {method} {path} {json.dumps(body) if body is not None else ''} {fields} -> {reply}")
        return reply

    # --- reads

    def expect(self, name, seen, reply):
        """Compares what was read with the view."""
        if seen == self.view.get(name):
            self.was_read[name] = True
            return
        guarantee = "monotonic reads" if self.was_read.get(name) else "read your writes"
        raise Broken(f"{guarantee}: {self.paths[name]} is {seen}, not {self.view.get(name)}: {reply}")

    def is_marked(self, reply, has_acted):
        """True if the reply says that it lacks an effect; counts the marks that neither an action nor a lost answer explains."""
        is_marked = "rockpool-dirty" in reply.fields
        self.unexplained += is_marked and not has_acted and not self.is_in_doubt
        return is_marked

    def read(self, name, *, may_be_marked=True):
        reply = self.send("GET", self.paths[name])
        if may_be_marked and self.is_marked(reply, name in self.acted):
            return reply
        if reply.status not in (200, 404):
            raise Broken(f"read your writes: {self.paths[name]} cannot be read: {reply}")
        self.expect(name, self.members(reply.json) if reply.status == 200 else None, reply)
        self.tags[name] = reply.fields.get("etag")
        return reply

    def read_list(self, *, may_be_marked=True):
        reply = self.send("GET", "/v1/notes")
        if may_be_marked and self.is_marked(reply, bool(self.acted)):
            return
        if reply.status != 200 or not isinstance(reply.json, list):
            raise Broken(f"read your writes: the list cannot be read: {reply}")
        seen, meant = (
            sorted(json.dumps(note, sort_keys=True) for note in notes) for notes in (map(self.members, reply.json), self.view.values())
        )
        if seen != meant:
            raise Broken(f"read your writes, in the list: {seen}, not {meant}: {reply}")

    # --- writes

    def write(self, kind):
        """One write to a random live note; its `mark` is unique."""
        self.written += 1
        mark = f"{self.name}{self.written}"
        if kind == "create":
            note = {"title": mark, "body": "", "count": self.written, "done": False, f"mark-{self.name}": mark}
            reply = self.accepted(self.send("POST", "/v1/notes", note))
            path = reply.fields.get("location", "") if reply.status == 201 else None
            local = reply.fields.get("rockpool-local-id")
            self.paths[mark] = path or (f"/v1/notes/{local}" if local else "")
            if not self.paths[mark]:
                raise Broken(f"read your writes: no path for a created note: {reply}")
            self.view[mark] = note
            return
        name = self.chance.choice(sorted(self.view))
        path, before = self.paths[name], self.view[name]
        condition = {"If_Match": self.tags[name]} if self.tags.get(name) and self.chance.random() < 0.3 else {}
        self.tags[name], self.was_read[name] = None, False
        if kind == "delete":
            self.accepted(self.send("DELETE", path, **condition))
            del self.view[name]
            self.gone.add(name)
            self.acted.discard(name)
        elif kind == "action":
            self.accepted(self.send("POST", path + "/toggle"))
            self.view[name] = {**before, "done": not before["done"]}
            self.acted.add(name)
        else:
            change = {f"mark-{self.name}": mark, self.chance.choice(FIELDS[:2]): mark}
            if self.chance.random() < 0.3:
                change["count"] = before["count"] + 1
            after = {**before, **change}
            # After an action whose effect it cannot know, a client must not replace the note as a whole.
            replaces = kind == "put" and name not in self.acted
            reply = self.accepted(self.send("PUT" if replaces else "PATCH", path, after if replaces else change, **condition))
            self.view[name], self.tags[name] = after, reply.fields.get("etag")

    def accepted(self, reply):
        if not 200 <= reply.status < 300:
            raise Broken(f"one client never conflicts with itself: {self.story[-1]}")
        return reply
