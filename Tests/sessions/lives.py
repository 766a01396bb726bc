"""Lives of clients that write to a handful of undeclared paths, through refusals, lost answers and outages (docs/outbox.md#lanes).

The API answers as the life decides for each write; the model is what it has answered. Each write has a number in `X-Write`."""

import contextlib
import http.client
import json
import random
import socket
import threading
import time

from client import Broken
from server import Server, free_port

PATHS = ("/cart", "/lines/1", "/up/a~b", "/events", "/write")
# Another spelling of the same path.
SPELLED = {"/up/a~b": ("/up/a%7Eb", "/up/a%7eb", "/%75p/a~b")}
# What the API may refuse a write with, so that the write is over: 409 and 412 to a PUT are conflicts, which later writes build on.
REFUSALS = {
    "POST": (400, 403, 404, 405, 409, 410, 412, 413, 415, 422, 501),
    "PUT": (400, 403, 405, 413, 422, 501),
    "DELETE": (400, 403, 405, 422),
}
SETTLES_WITHIN = 5.0


class LifeAPI:
    """Answers each write by `plan`, which a life sets by the write's number: a status, `lost` (applied, then cut), or `cut`."""

    def __init__(self, port):
        self.port, self.plan, self.lock = port, {}, threading.Lock()
        # What arrived, and what has taken effect, in order.
        self.arrived, self.effects = [], []
        self.listener, self.sockets = None, set()
        self.redirects = "/elsewhere"

    def open(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.listener = listener
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def close(self):
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
                stream.read(int(fields.get("content-length", 0)))
                number = int(fields.get("x-write", 0))
                with self.lock:
                    if connection not in self.sockets:
                        return
                    outcome = self.arrive(method, target, number) if number else 204
                if outcome is None:
                    return
                place = f"Location: {self.redirects}\r\n" if outcome == 302 else ""
                body = "" if outcome in (204, 302) else '{"said": "no"}' if outcome >= 400 else '{"said": "yes"}'
                kind = "Content-Type: application/json\r\n" if body else ""
                connection.sendall(f"HTTP/1.1 {outcome} Said\r\n{place}{kind}Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def arrive(self, method, target, number):
        """The status, or None for a connection that breaks."""
        self.arrived.append((number, method, target))
        planned = self.plan.pop(number, None)
        if planned in ("lost", "cut"):
            if planned == "lost":
                self.effects.append((number, method, target))
            return None
        if planned is not None:
            return planned
        self.effects.append((number, method, target))
        return 201 if method == "POST" else 204


class Life:
    def __init__(self, options, seed):
        self.random, self.story = random.Random(seed), []
        self.api = LifeAPI(free_port())
        self.api.open()
        self.server = Server(
            options.binary,
            self.api.port,
            upstream="idempotency: { max_processing: 1s }, probe: { path: /healthz, interval: 1s, expect: [204] }",
        )
        self.token = self.random.choice((None, "Bearer ann"))
        self.written, self.refused = 0, {}
        # By number: method, path, what the client got.
        self.writes = {}

    def send(self, method, path, number, token=None, source="127.0.0.1"):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.gateway, timeout=30, source_address=(source, 0))
        fields = {"X-Write": str(number), "Content-Type": "application/json", **({"Authorization": token} if token else {})}
        begun = time.monotonic()
        try:
            connection.request(method, path, None if method == "DELETE" else json.dumps({"n": number}), fields)
            response = connection.getresponse()
            response.read()
            got = {name.lower(): value for name, value in response.getheaders()}
        except (OSError, http.client.HTTPException) as error:
            raise Broken(f"availability: no answer to {number} {method} {path}: {error!r}") from error
        finally:
            connection.close()
        self.story.append(f"{number} {method} {path} {token or source}: {response.status} {got.get('rockpool-state', '')}")
        return response.status, got, time.monotonic() - begun

    def planned(self, method):
        """What the API will do with the next write."""
        chance = self.random.random()
        if chance < 0.55:
            return None
        if chance < 0.75:
            status = self.random.choice(REFUSALS[method])
            return self.twice(status, status)
        if chance < 0.80:
            return self.twice(302, 302) if method == "POST" else None
        end = "lost" if chance < 0.92 else "cut"
        return self.twice("unknown effect", end) if method == "POST" else end

    def twice(self, kind, end):
        """`end`, unless that would be the third of a kind: after three the route pauses (docs/outbox.md#mass-refusal)."""
        self.refused[kind] = self.refused.get(kind, 0) + 1
        return end if self.refused[kind] <= 2 else None

    def write(self, method=None, path=None):
        self.written += 1
        number = self.written
        path = path or self.random.choice(PATHS)
        method = method or self.random.choice(("POST", "POST", "POST", "PUT", "PUT", "DELETE"))
        plan = self.planned(method)
        if plan:
            self.api.plan[number] = plan
            self.story.append(f"  the API will answer {number} with {plan}")
        spelled = self.random.choice((path, *SPELLED.get(path, ())))
        status, got, _ = self.send(method, spelled, number, self.token)
        self.writes[number] = (method, path, status, "rockpool-operation" in got)

    def live(self, steps):
        for _ in range(steps):
            chance = self.random.random()
            if chance < 0.12 and self.api.listener:
                self.story.append("-- the line goes")
                self.api.close()
            elif chance < 0.34 and not self.api.listener:
                self.story.append("-- the line returns")
                self.api.open()
                if self.random.random() < 0.5:
                    time.sleep(self.random.uniform(0, 1.5))
            else:
                self.write()

    def settle(self):
        if not self.api.listener:
            self.story.append("-- the line returns")
            self.api.open()
        begun = time.monotonic()
        while True:
            states = [(one["state"], one["method"], one["url"]) for one in self.server.operations()]
            moving = [one for one in states if one[0] in ("pending", "inflight")]
            if not moving:
                return
            if time.monotonic() - begun > SETTLES_WITHIN:
                raise Broken(f"delivery: {len(moving)} writes wait {SETTLES_WITHIN} s after the line's return: {states}")
            time.sleep(0.05)

    def check(self):
        states = {int(one["number"]): one["state"] for one in self.numbered()}
        for number, (method, path, status, is_queued) in self.writes.items():
            effects = [one for one in self.api.effects if one[0] == number]
            state = states.get(number)
            if is_queued and state is None:
                raise Broken(f"acknowledged: {number} {method} {path} is lost")
            if method == "POST" and len(effects) > 1:
                raise Broken(f"once: {number} {method} {path} took effect {len(effects)} times")
            if (state == "delivered" or not is_queued and status < 300) and not effects:
                raise Broken(f"delivery: {number} {method} {path} ({status}, {state}) has no effect")
            if state in ("dead", "parked", "conflicted") and effects:
                raise Broken(f"refusal: {number} {method} {path} is {state} and took effect")
            # Nothing builds on a POST in conflict; it is refused.
            if state in ("pending", "inflight") or state == "conflicted" and method != "POST":
                raise Broken(f"delivery: {number} {method} {path} is {state}")
        for path in PATHS:
            spelled = (path, *SPELLED.get(path, ()))
            order = [number for number, _, target in self.api.effects if target in spelled]
            # A second effect of a PUT or a DELETE whose answer was lost follows the first one.
            firsts = list(dict.fromkeys(order))
            if firsts != sorted(firsts):
                raise Broken(f"order: the writes to {path} took effect as {order}")

    def numbered(self):
        for one in self.server.operations("all"):
            shown = self.server.call("GET", f"/v1/operations/{one['id']}")
            fields = {name.lower(): value for name, value in shown["headers"].items()}
            yield {"number": fields["x-write"], "state": shown["state"]}

    def answered_at_once(self):
        """Nothing that was refused or lost holds a later POST of anybody."""
        # The waits for earlier attempts of PUT and DELETE that may still run are over.
        time.sleep(1.1)
        for method in ("POST", "PUT", "DELETE"):
            self.answered(method, PATHS)

    def answered(self, method, paths):
        """A write of everybody is answered by the API itself."""
        for path in paths:
            for token, source in ((self.token, "127.0.0.1"), (None, "127.0.0.2"), ("Bearer bob", "127.0.0.1")):
                self.written += 1
                status, got, took = self.send(method, path, self.written, token, source)
                if "rockpool-operation" in got or status not in (201, 204) or took > 1:
                    raise Broken(f"at once: {method} {path} is answered {status} {got.get('rockpool-state', '')} after {took:.2f} s")

    def reaches(self, operation, states, retry=None):
        """Waits until an operation has reached one of the states."""
        begun, seen = time.monotonic(), None
        while seen not in states.split("|"):
            shown = self.server.call("GET", f"/v1/operations/{operation}")
            seen = shown["state"]
            if seen == "pending" and shown["attempts"] and retry == 403:
                # The first 403 is tried once more.
                self.api.plan.setdefault(int(shown["headers"]["X-Write"]), 403)
            if time.monotonic() - begun > 15:
                raise Broken(f"{operation} is {seen}, and not {states}")
            time.sleep(0.05)

    def end(self):
        self.api.close()
        self.server.stop()


# How one write ends that was queued while the line was down, and the state in which it then waits.
ENDS = {
    400: "dead",
    403: "dead",
    404: "dead",
    409: "conflicted",
    412: "conflicted",
    422: "dead",
    302: "parked|uncertain|dead",
    "lost": "uncertain",
    "cut": "uncertain",
}


def refused_once(options, _seed, _steps):
    """One POST of each end, to a path of its own: later writes of everybody are answered by the API at once."""
    life = Life(options, 1)
    try:
        life.token, life.api.redirects = None, "/login"
        for place, (end, state) in enumerate(ENDS.items()):
            path = f"/ended/{place}"
            if life.api.listener:
                life.api.close()
            life.written += 1
            life.api.plan[life.written] = end
            status, got, _ = life.send("POST", path, life.written)
            if "rockpool-operation" not in got:
                raise Broken(f"the POST that ends as {end} is answered {status}")
            life.api.open()
            life.reaches(got["rockpool-operation"], state, retry=end)
            for method in ("POST", "PUT", "DELETE", "POST"):
                life.answered(method, (path,))
        return None, life.story
    except Broken as broken:
        return broken, life.story
    finally:
        life.end()


def one_life(options, seed, steps):
    life = Life(options, seed)
    try:
        life.live(steps)
        life.settle()
        life.check()
        life.answered_at_once()
        life.check()
        return None, life.story
    except Broken as broken:
        return broken, life.story + [str(life.api.effects)]
    finally:
        life.end()
