"""A real PostgreSQL of Debian's package: a primary, and a standby that it waits for."""

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path


def programs():
    """The directory of the newest server; None where the package is missing."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    return os.path.dirname(found[-1]) if found else None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    """One server; a standby streams over `line` where it is given. Run as the user `postgres` where this process is root."""

    made = []

    def __init__(self, standby_of=None, line=None, settings=""):
        self.port = free_port()
        self.scratch = Path(tempfile.mkdtemp(prefix="rp-pg-"))
        self.data = self.scratch / "data"
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            os.chown(self.scratch, pwd.getpwnam(self.user).pw_uid, -1)
        Cluster.made.append(self)
        if standby_of is None:
            self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-N")
            hba = self.data / "pg_hba.conf"
            hba.write_text(hba.read_text() + "host replication all 127.0.0.1/32 trust\n")
        else:
            source = f"host=127.0.0.1 port={standby_of.port} user=postgres"
            self.run("pg_basebackup", "-d", source, "-D", self.data, "-R", "-X", "stream", "-c", "fast")
            port = (line or standby_of).port
            self.configure(f"primary_conninfo = 'host=127.0.0.1 port={port} user=postgres application_name=standby'")
        self.configure(f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{self.scratch}'")
        self.configure(f"shared_buffers = 32MB\n{settings}")
        self.start()
        if standby_of is None:
            self.sql("CREATE DATABASE rockpool", database="postgres")

    @classmethod
    def discard_all(cls):
        for cluster in cls.made:
            cluster.kill()
            shutil.rmtree(cluster.scratch, ignore_errors=True)
        cls.made = []

    @property
    def url(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/rockpool?sslmode=disable"

    def run(self, program, *words, check=True):
        command = [f"{programs()}/{program}", *map(str, words)]
        if self.user:
            command = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", *command]
        return subprocess.run(command, check=check, capture_output=True, text=True, cwd="/")

    def configure(self, lines):
        with open(self.data / "postgresql.auto.conf", "a") as file:
            file.write(lines + "\n")

    def start(self):
        self.run("pg_ctl", "-D", self.data, "-w", "-l", self.scratch / "log", "start")

    def reload(self):
        self.run("pg_ctl", "-D", self.data, "reload")

    def promote(self):
        self.run("pg_ctl", "-D", self.data, "-w", "promote")

    def pids(self):
        """The server and its children."""
        try:
            first = int((self.data / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError):
            return []
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True, text=True).stdout.split()
        return [first, *map(int, children)]

    def kill(self):
        """SIGKILL, as a power failure of the host."""
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.2)
        # Without a parent that waits for it, the process stays as a zombie, and PostgreSQL takes its lock files for those of a live one.
        for file in [self.data / "postmaster.pid", *self.scratch.glob(".s.PGSQL.*")]:
            file.unlink(missing_ok=True)

    def pause(self, is_paused=True):
        for pid in self.pids():
            os.kill(pid, signal.SIGSTOP if is_paused else signal.SIGCONT)

    def sql(self, text, database="rockpool"):
        """The first column of every row."""
        words = ["-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-d", database, "-Atc", text]
        return self.run("psql", *words).stdout.split("\n")[:-1]
