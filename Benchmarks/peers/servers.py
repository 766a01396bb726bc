"""The processes of a run: started on one core in their own folder, measured as a tree, and always terminated."""

import os
import signal
import socket
import subprocess
import time
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")


class BenchmarkError(Exception):
    """The reason why a run has no result, in one line."""


def free_ports(count):
    """Distinct ports that were free when tested."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Process(NamedTuple):
    parent: int
    cpu: float  # seconds, user and system, including ended children
    started: int  # with the pid it identifies the process: pids are reused


def process_table():
    """Every process of the machine, by pid."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue  # The process has ended meanwhile.
        table[int(name)] = Process(int(fields[1]), sum(map(int, fields[11:15])) / TICKS, int(fields[19]))
    return table


class Server:
    """One server and all its descendants."""

    def __init__(self, name, command, ports, core, folder):
        self.name = name
        self.log = os.path.join(folder, "output.log")
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                ["taskset", "-c", str(core), *command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.ports = ports

    def wait_until_ready(self, seconds=30):
        deadline = time.monotonic() + seconds
        for port in self.ports:
            while not self._accepts(port):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise BenchmarkError(f"{self.name} does not serve: {self._last_words()}")
                time.sleep(0.05)

    @staticmethod
    def _accepts(port):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            return False

    def _last_words(self):
        with open(self.log, errors="replace") as file:
            return " / ".join(file.read().strip().splitlines()[-5:]) or "it says nothing"

    def pids(self, table):
        """The server and its descendants."""
        found = {self.process.pid} & table.keys()
        while True:
            more = {pid for pid, process in table.items() if process.parent in found} - found
            if not more:
                return found
            found |= more

    def cpu_seconds(self):
        table = process_table()
        return sum(table[pid].cpu for pid in self.pids(table))

    def stop(self):
        before = process_table()
        own = self.pids(before)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        after = process_table()
        for pid in own & after.keys():
            if after[pid].started == before[pid].started:
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
