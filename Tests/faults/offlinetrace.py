"""The packets a process sends, by strace: every call that sends data, with the peer's address."""

import collections
import re
import shutil
import subprocess
from pathlib import Path

from result import Skip

CALLS = "connect,sendto,sendmsg,sendmmsg,write,writev,sendfile,splice"
LINE = re.compile(r"^\d+ +(\d+\.\d+) (\w+)\((.*)$")
PEER = re.compile(r"->(\[?[0-9a-f.:]+?\]?):(\d+)\]>")
TO = re.compile(r'sin6?_port=htons\((\d+)\).*?(?:inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)")')


def needed():
    if not shutil.which("strace"):
        raise Skip("strace")
    if subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True).returncode:
        raise Skip("strace that may attach")


class Trace:
    """The trace files of the processes of one scene."""

    def __init__(self, home):
        self.home, self.number = home, 0

    def command(self, who):
        """The words to put before a command."""
        self.number += 1
        return [
            "strace",
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-ttt",
            "-yy",
            "-s",
            "24",
            "-e",
            f"trace={CALLS}",
            "-e",
            "signal=none",
            "-o",
            f"{self.home}/trace.{self.number}.{who}",
        ]

    def packets(self):
        """(time, process, call, address, port, line) of each call with a peer address."""
        for file in sorted(Path(self.home).glob("trace.*")):
            for line in file.read_text(errors="replace").splitlines():
                found = LINE.match(line)
                if not found or not (place := destination(found[2], found[3])):
                    continue
                yield float(found[1]), file.name.split(".")[2], found[2], *place, found[3]

    def forbidden(self, since, places, dns):
        """Calls after `since` to one of `places` (HOST:PORT), or with `dns` to any DNS server, with their numbers."""
        return collections.Counter(
            f"{who}: {call} to {host}:{port}"
            for when, who, call, host, port, _ in self.packets()
            if when > since and (f"{host}:{port}" in places or dns and port == 53)
        )

    def count(self, place):
        """All calls to the address: proves that the trace could have found a forbidden one."""
        return sum(f"{host}:{port}" == place for *_, host, port, _ in self.packets())


def destination(call, words):
    """(address, port), or None without a peer: a file, a pipe, a socket that is only queried."""
    first = words.split(",", 1)[0]
    # The peer of a connected socket; else the address in the call.
    if found := PEER.search(first):
        return found[1].strip("[]").removeprefix("::ffff:"), int(found[2])
    # Connecting a datagram socket sends nothing; glibc does so to sort addresses.
    if call == "connect" and "UDP" in first or call not in ("connect", "sendto", "sendmsg", "sendmmsg"):
        return None
    found = TO.search(words)
    return ((found[2] or found[3]).removeprefix("::ffff:"), int(found[1])) if found else None
