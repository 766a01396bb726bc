"""A malicious name server, and listeners on all addresses that its responses may lead to."""

import collections
import ipaddress
import shutil
import socket
import struct
import tempfile
import threading
from pathlib import Path

from link import NEAR

ADDRESS, HTTP, TLS = "127.0.0.53", 8080, 8443
ALLOWED, METADATA = "10.201.0.9", "169.254.169.254"
# Forbidden for every client and by every name.
FORBIDDEN = {
    "metadata": METADATA,
    "link-local": "169.254.7.7",
    "amazon": "fd00:ec2::254",
    "alibaba": "100.100.100.200",
    "zero": "0.0.0.0",
    "zeros": "0.1.2.3",
    "unspecified": "::",
    "mapped": f"::ffff:{METADATA}",
    "compatible": f"::{METADATA}",
    "nat64": "64:ff9b::a9fe:a9fe",
    "sixtofour": "2002:a9fe:a9fe::",
    "multicast": "224.0.0.1",
    "broadcast": "255.255.255.255",
    "mapped-alibaba": "::ffff:100.100.100.200",
}
# Addresses of this machine: open to local clients and to declared upstreams, closed to remote clients.
OWN = {
    "loop": "127.0.0.1",
    "loop2": "127.8.8.8",
    "loop6": "::1",
    "mapped-loop": "::ffff:127.0.0.1",
    "compatible-loop": "::127.0.0.1",
    "nat64-loop": "64:ff9b::7f00:1",
    "sixtofour-loop": "2002:7f00:1::",
}
# Addresses added to the namespace's loopback device, so that a connection to them would arrive.
PLACES = [
    ALLOWED,
    METADATA,
    "169.254.7.7",
    "100.100.100.200",
    "fd00:ec2::254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    f"::{METADATA}",
    "::127.0.0.1",
]


class Names:
    """Answers `KEY.….test` from the tables above, with a TTL of 0. `flip…` is permitted at its first look-up and forbidden at every
    later one, `flop…` the other way round; `both…` returns both at once."""

    def __init__(self):
        self.asked, self.socket = collections.Counter(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((ADDRESS, 53))
        threading.Thread(target=self.serve, daemon=True).start()
        self.home = tempfile.mkdtemp(prefix="rpf-names-")
        for name, text in {
            "resolv.conf": f"nameserver {ADDRESS}\noptions timeout:1 attempts:2\n",
            "nsswitch.conf": "hosts: files dns\n",
            "hosts": "127.0.0.1 localhost\n",
        }.items():
            Path(self.home, name).write_text(text)

    @property
    def command(self):
        """A command prefix that makes a program use this resolver, in its own mount namespace."""
        binds = " && ".join(f"mount --bind {self.home}/{name} /etc/{name}" for name in ("resolv.conf", "nsswitch.conf", "hosts"))
        return ["unshare", "--mount", "sh", "-c", f'{binds} && exec "$@"', "sh"]

    def serve(self):
        while True:
            try:
                data, peer = self.socket.recvfrom(4096)
            except OSError:
                return
            self.socket.sendto(self.answer(data), peer)

    def answer(self, data):
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode("latin-1").lower())
            at += data[at] + 1
        kind, end = struct.unpack(">H", data[at + 1 : at + 3])[0], at + 5
        records = b""
        found = [ipaddress.ip_address(text) for text in self.addresses(labels[0], kind)]
        found = [address for address in found if kind == (1 if address.version == 4 else 28)]
        for address in found:
            records += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(address.packed)) + address.packed
        return data[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, len(found), 0, 0) + data[12:end] + records

    def addresses(self, key, kind):
        if key.startswith(("flip", "flop")):
            if kind != 1:
                return []
            self.asked[key] += 1
            return [ALLOWED if (self.asked[key] == 1) == key.startswith("flip") else METADATA]
        if key.startswith("both"):
            return [METADATA, ALLOWED]
        return [address for address in [(FORBIDDEN | OWN | {"allowed": ALLOWED, "near": NEAR}).get(key)] if address]

    def close(self):
        self.socket.close()
        shutil.rmtree(self.home)


class Doors:
    """Accepts connections on every address, and records the destination of each."""

    def __init__(self):
        self.reached, self.sockets = [], []
        for port in (80, HTTP, TLS):
            s = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
            self.sockets.append(s)
            threading.Thread(target=self.accept, args=(s,), daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            place = ipaddress.ip_address(peer.getsockname()[0].split("%")[0])
            self.reached.append(place.ipv4_mapped or place)  # an IPv6 socket: IPv4 addresses are mapped
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    @staticmethod
    def serve(peer):
        try:
            peer.settimeout(5)
            if peer.recv(65536).startswith((b"GET", b"HEAD")):
                peer.sendall(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhere")
        except OSError:
            pass
        finally:
            peer.close()

    def close(self):
        for s in self.sockets:
            s.close()
