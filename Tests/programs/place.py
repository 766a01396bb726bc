"""A server that is played, Rockpool before it, a line between both that can be cut, and programs that are run."""

import contextlib
import http.server
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))


class Broken(Exception):
    """Something that a scene expects did not hold."""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Line:
    """Passes on connections to a port, until it is cut: then connections are refused."""

    def __init__(self, target):
        self.target, self.open, self.port = target, set(), free_ports(1)[0]
        self.lock, self.door = threading.Lock(), None
        self.mend()

    def mend(self):
        if self.door:
            return
        door = socket.socket()
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", self.port))
        door.listen(128)
        self.door = door
        threading.Thread(target=self._accept, args=(door,), daemon=True).start()

    def cut(self):
        if not self.door:
            return
        self.door.shutdown(socket.SHUT_RDWR)
        self.door.close()
        self.door = None
        with self.lock:
            ends, self.open = self.open, set()
        for one in ends:
            self._end(one)

    def _accept(self, door):
        while True:
            try:
                near = door.accept()[0]
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self.lock:
                self.open |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        with self.lock:
            self.open -= {source, sink}
        self._end(source)
        self._end(sink)

    @staticmethod
    def _end(one):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        one.close()


class Asked:
    """A request as it came to the played server."""

    def __init__(self, method, path, fields, body):
        self.method, self.path, self.fields, self.body, self.at = method, path, fields, body, time.monotonic()

    def __repr__(self):
        return f"{self.method} {self.path}"


class Site:
    """A server whose answers a function gives: `play(asked)` returns status, fields and body."""

    def __init__(self, play):
        self.play, self.asked, self.lock = play, [], threading.Lock()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self):
                if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                    body = b""
                    while size := int(self.rfile.readline().split(b";")[0], 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    length = int(self.headers.get("Content-Length") or 0)
                    body = self.rfile.read(length)
                    if len(body) < length:
                        self.close_connection = True
                        return
                asked = Asked(self.command, self.path, self.headers, body)
                with site.lock:
                    site.asked.append(asked)
                said = site.play(asked)
                if said is None:
                    self.close_connection = True
                    return
                status, fields, content = said
                content = content.encode() if isinstance(content, str) else content
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name, value)
                if status >= 200 and status not in (204, 304) and "Content-Length" not in fields:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD" and status not in (204, 304):
                    self.wfile.write(content)

            def __getattr__(self, name):
                if name.startswith("do_"):
                    return self.answer
                raise AttributeError(name)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, method, start=""):
        with self.lock:
            return sum(one.method == method and one.path.startswith(start) for one in self.asked)

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Place:
    """A directory with a server, Rockpool before it, and the processes that a scene starts."""

    def __init__(self, binary, directory):
        self.binary, self.directory, self.processes, self.sites, self.broken = binary, directory, [], [], []
        self.line = self.rockpool = None

    # The server and Rockpool.

    def site(self, play):
        self.sites.append(Site(play))
        return self.sites[-1]

    def begin(self, port, upstream=None, **top):
        """Starts Rockpool before the server at a port."""
        self.line = Line(port)
        self.gateway, self.proxy, self.admin = free_ports(3)
        declared = {"name": "u", "origin": f"http://127.0.0.1:{self.line.port}", "gateway": f"127.0.0.1:{self.gateway}", **(upstream or {})}
        state = {"cache_dir": self.directory + "/cache", "state_dir": self.directory + "/state", "min_free": "1 MB"}
        configured = {
            "proxy": {"listen": f"127.0.0.1:{self.proxy}"},
            "admin": {"listen": f"127.0.0.1:{self.admin}"},
            "storage": state,
            "upstreams": [declared],
            **top,
        }
        with open(self.directory + "/rockpool.yaml", "w", encoding="utf-8") as file:
            json.dump(configured, file)
        self.url = f"http://127.0.0.1:{self.gateway}"
        self.restart()

    def restart(self):
        with open(self.directory + "/rockpool.log", "ab") as log:
            command = [self.binary, "serve", "--config", self.directory + "/rockpool.yaml"]
            self.rockpool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        self.processes.append(self.rockpool)
        if not self.rockpool.stdout.readline():
            raise Broken("Rockpool does not start: " + self.read("rockpool.log")[-600:])

    def away(self):
        self.line.cut()

    def back(self):
        self.line.mend()

    @contextlib.contextmanager
    def flapping(self):
        """A line that is cut and mended again and again."""
        over, chance = threading.Event(), random.Random(48)

        def swing():
            while not over.is_set():
                self.away()
                over.wait(chance.uniform(0.1, 0.8))
                self.back()
                over.wait(chance.uniform(0.1, 1.2))

        thread = threading.Thread(target=swing, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        self.online()

    def turn(self, mode):
        self.call("PUT", "/v1/network", {"mode": mode})

    def call(self, method, path, body=None):
        with open(self.directory + "/state/admin-token", encoding="utf-8") as file:
            fields = {"Authorization": "Bearer " + file.read().strip(), "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin}{path}", data, fields, method=method)
        with urllib.request.urlopen(request, timeout=30) as reply:
            content = reply.read()
            return json.loads(content) if content else None

    def operations(self, state=None):
        return self.call("GET", "/v1/operations?limit=500" + (f"&state={state}" if state else ""))["items"]

    def settled(self, within=20, ended=("dead", "conflicted", "uncertain", "parked")):
        """Waits until nothing is to be sent any more; returns what stays open."""
        until = time.monotonic() + within
        while time.monotonic() < until:
            rows = self.operations()
            if all(row["state"] in ended for row in rows):
                return rows
            time.sleep(0.1)
        self.check(False, f"still waiting after {within} s: {shown(rows)}")
        return rows

    def online(self, within=20):
        """Waits until Rockpool holds the server for reachable."""
        self.eventually("the upstream is online", lambda: self.reachability() == "online", within)

    def reachability(self):
        return self.call("GET", "/v1/status")["upstreams"][0]["reachability"]

    # Programs.

    def start(self, *command, ready=None, **more):
        """Starts a program that stays; waits until the URL answers."""
        log = open(self.directory + f"/{os.path.basename(command[0])}.log", "ab")  # noqa: SIM115
        process = subprocess.Popen(command, cwd=self.directory, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **more)
        self.processes.append(process)
        if ready:
            self.eventually(ready, lambda: self.get(ready)[0] > 0, 60)
        return process

    def run(self, *command, within=60, environment=None):
        """Runs a program; returns status and what it printed. A program that takes longer is ended: its status is None."""
        plain = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        run = subprocess.Popen(
            command,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**plain, "HOME": self.directory, **(environment or {})},
        )
        try:
            said = run.communicate(timeout=within)[0]
            status = run.returncode
        except subprocess.TimeoutExpired:
            run.kill()
            said, status = run.communicate()[0], None
        return status, said

    def get(self, url, **fields):
        return self.send("GET", url, **fields)

    def send(self, method, url, body=None, **fields):
        """Sends a request; returns status, fields and content. Status 0: there was no answer."""
        url = url if url.startswith("http") else self.url + url
        data = body.encode() if isinstance(body, str) else body
        request = urllib.request.Request(url, data, {name.replace("_", "-"): value for name, value in fields.items()}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Still)
        try:
            with opener.open(request, timeout=30) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()
        except OSError as error:
            return 0, {}, str(error).encode()

    def eventually(self, what, holds, within=20):
        until = time.monotonic() + within
        while time.monotonic() < until:
            if holds():
                return True
            time.sleep(0.05)
        return self.check(False, f"not within {within} s: {what}")

    def check(self, holds, what):
        if not holds:
            self.broken.append(what)
            print("  ✘ " + what, flush=True)
        return holds

    def write(self, name, content):
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return path

    def read(self, name):
        with open(os.path.join(self.directory, name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        if self.line:
            self.line.cut()
        for site in self.sites:
            site.end()


def shown(rows):
    """What a message says of operations."""
    return [" ".join(map(str, (r["method"], r["url"], r["state"], r.get("reason"), r.get("waiting")))) for r in rows[:4]]


class Still(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects."""

    def redirect_request(self, *_):
        return None


def found(name):
    """The path of a program: of `make programs` first, then in the path; nil if there is none."""
    own = os.path.dirname(os.environ.get("ROCKPOOL_PYTHON", ""))
    return (shutil.which(name, path=own) if own else None) or shutil.which(name)


def has_module(python, *modules):
    return subprocess.run([python, "-c", "import " + ", ".join(modules)], capture_output=True).returncode == 0


def python_with(*modules):
    """A Python that has these modules; None if there is none."""
    for python in (os.environ.get("ROCKPOOL_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and os.path.exists(python) and has_module(python, *modules):
            return python
    return None


def scene(*programs, modules=(), file="/"):
    """Marks a function as a scene that needs programs, a file, and a Python with modules."""

    def mark(function):
        function.needs = [*programs, *modules]
        function.present = lambda: (
            all(found(name) for name in programs) and os.path.exists(file) and (not modules or python_with(*modules) is not None)
        )
        return function

    return mark
