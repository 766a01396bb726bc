"""What a process sends, by strace: every call that makes a packet, with the address at the other end."""
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
    """The files that the processes of one scene have been traced into."""

    def __init__(self, home):
        self.home, self.number = home, 0

    def command(self, who):
        """What goes before a command."""
        self.number += 1
        return ["strace", "-f", "--seccomp-bpf", "-qq", "-ttt", "-yy", "-s", "24", "-e", f"trace={CALLS}", "-e", "signal=none",
                "-o", f"{self.home}/trace.{self.number}.{who}"]

    def packets(self):
        """(when, who, call, address, port, the line) of each call with an address at the other end."""
        for file in sorted(Path(self.home).glob("trace.*")):
            for line in file.read_text(errors="replace").splitlines():
                found = LINE.match(line)
                if not found or not (place := destination(found[2], found[3])):
                    continue
                yield float(found[1]), file.name.split(".")[2], found[2], *place, found[3]

    def forbidden(self, since, places, dns):
        """Calls after `since` to one of `places` (HOST:PORT), or, where `dns`, to anybody's DNS; in words and how often."""
        return collections.Counter(f"{who}: {call} to {host}:{port}" for when, who, call, host, port, _ in self.packets()
                                   if when > since and (f"{host}:{port}" in places or dns and port == 53))

    def count(self, place):
        """All calls to it: that what is not found could have been."""
        return sum(f"{host}:{port}" == place for *_, host, port, _ in self.packets())


def destination(call, words):
    """(address, port), or None where there is none: a file, a pipe, a socket that is only asked about."""
    first = words.split(",", 1)[0]
    # A connected socket's own peer; else the address that the call names.
    if found := PEER.search(first):
        return found[1].strip("[]").removeprefix("::ffff:"), int(found[2])
    # To connect a datagram socket sends nothing; glibc does so to sort addresses.
    if call == "connect" and "UDP" in first or call not in ("connect", "sendto", "sendmsg", "sendmmsg"):
        return None
    found = TO.search(words)
    return ((found[2] or found[3]).removeprefix("::ffff:"), int(found[1])) if found else None
