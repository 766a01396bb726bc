"""The release binary under test, in its own directories, observed from outside."""

import contextlib
import http.client
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path


class Ports:
    """The ports of this process, in turn. Each process has a block of its own, below those of the Swift tests (`FreePort`) and of
    clients: a port whose origin is away would be another's else. The first one of a block stays bound until its process ends."""

    SIZE = 500

    def __init__(self):
        self.lock, self.mark, starts = threading.Lock(), None, list(range(10_000, 20_000, self.SIZE))
        random.shuffle(starts)
        for self.first in starts:
            self.mark = socket.socket()
            try:
                self.mark.bind(("127.0.0.1", self.first))
                break
            except OSError:
                self.mark.close()
        self.last = random.randrange(self.SIZE)

    def next(self, host):
        with self.lock:
            while True:
                self.last = self.last % (self.SIZE - 1) + 1
                with socket.socket() as s, contextlib.suppress(OSError):
                    s.bind((host, self.first + self.last))
                    return self.first + self.last


PORTS = Ports()


def free_port(host="127.0.0.1"):
    """A port that stays free until an origin opens it again."""
    return PORTS.next(host)


class Problem(Exception):
    """The admin API returned a problem instead; its text."""


class Refused(Exception):
    """The server terminated instead of becoming ready; its output."""


class Server:
    """`rockpool serve` in front of `origin` (a port of loopback, or HOST:PORT)."""

    made = []

    @classmethod
    def discard_all(cls):
        """Removes everything that a run has left."""
        for server in cls.made:
            if server.alive:
                server.kill()
            shutil.rmtree(server.scratch, ignore_errors=True)
        cls.made = []

    def __init__(
        self,
        binary,
        origin,
        *,
        timeouts="head: 10s, body: 30s, idle: 60s",
        limits="",
        proxy="",
        storage="",
        upstream="",
        cache_limit="64 MB",
        patience="connect: 1s, first_byte: 1s, idle: 1s",
        gateway="127.0.0.1",
        policy="standard",
        outbox="",
        descriptors=None,
        environment=None,
        command=(),
        start=True,
    ):
        self.binary, self.descriptors, self.environment, self.command = binary, descriptors, environment or {}, list(command)
        self.scratch = tempfile.mkdtemp(prefix="rpf-")
        self.host, self.gateway = gateway, free_port(gateway)
        origin = f"127.0.0.1:{origin}" if isinstance(origin, int) else origin
        Path(self.scratch, "rockpool.yaml").write_text(f"""
proxy: {{ listen: "127.0.0.1:0", timeouts: {{ {timeouts} }}, limits: {{ {limits} }}, {proxy} }}
admin: {{ listen: "127.0.0.1:0" }}
storage: {{ cache_dir: {self.scratch}/cache, state_dir: {self.scratch}/state, cache_limit: {cache_limit}, min_free: 1 MB, {storage} }}
outbox: {{ {outbox} }}
upstreams:
  - {{ name: origin, origin: "http://{origin}", gateway: "{gateway}:{self.gateway}", policy: {policy},
      timeouts: {{ {patience} }}, {upstream} }}
""")
        self.process = None
        Server.made.append(self)
        if start:
            self.start()

    def start(self):
        """Returns the seconds until it was ready; raises `Refused`."""

        def prepare():
            if self.descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors, self.descriptors))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        begun = time.monotonic()
        with open(f"{self.scratch}/log", "a") as log:
            self.process = subprocess.Popen(
                [*self.command, self.binary, "serve", "--config", f"{self.scratch}/rockpool.yaml"],
                stdout=subprocess.PIPE,
                stderr=log,
                preexec_fn=prepare,
                env={**os.environ, "SWIFT_BACKTRACE": "enable=no", **self.environment},
            )
        line = self.process.stdout.readline().decode()
        found = re.match(r"rockpool ready proxy=\S+:(\d+) admin=\S+:(\d+)", line)
        if not found:
            status = self.process.wait()
            raise Refused(self.log[-600:].strip() or f"ended with {status} before it was ready")
        self.proxy, self.admin = int(found[1]), int(found[2])
        return time.monotonic() - begun

    @property
    def log(self):
        return Path(self.scratch, "log").read_text(errors="replace")

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        """The server's own pid, even if it was started by a wrapper."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split() if self.command else []
        return int(children[0]) if children else self.process.pid

    def memory(self, field="VmRSS"):
        """Resident mebibytes now; with `VmHWM` the peak since `forget_peak`."""
        return int(re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text()).group(1)) / 1024

    def forget_peak(self):
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def disk(self):
        """Bytes used by the directories."""
        return sum(f.lstat().st_blocks * 512 for f in Path(self.scratch).rglob("*") if f.name != "log" and not f.is_symlink())

    def call(self, method, path, body=None):
        """The admin API's JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=20)
        token = Path(self.scratch, "state/admin-token").read_text().strip()
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
            return json.loads(connection.getresponse().read() or b"null")
        finally:
            connection.close()

    def metric(self, name):
        """The value of a metric, over all its labels."""
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=20)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return sum(float(value) for value in re.findall(rf"(?m)^{name}(?:{{.*}})? (\S+)$", text))

    def network(self, mode):
        self.call("PUT", "/v1/network", {"mode": mode, "upstream": None})

    def operations(self, state="all"):
        found, cursor = [], ""
        while cursor is not None:
            page = self.call("GET", f"/v1/operations?state={state}&limit=500" + (f"&cursor={cursor}" if cursor else ""))
            if "items" not in page:
                raise Problem(page)
            found, cursor = found + page["items"], page["next"]
        return found

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)
        self.process.wait()
        self.process.stdout.close()

    def stop(self, keep=False):
        """Returns the exit status after SIGTERM, 0 on success; removes the directories."""
        if self.alive:
            os.kill(self.pid, signal.SIGTERM)
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            status = "killed"
        if not keep:
            shutil.rmtree(self.scratch, ignore_errors=True)
        return status
