"""Names that resolve to forbidden addresses, and names that change between two look-ups."""

import collections
import contextlib
import ipaddress
import re
import shutil
import socket
import ssl

from link import NEAR, Link
from resolver import ALLOWED, FORBIDDEN, HTTP, OWN, PLACES, TLS, Doors, Names
from result import Result, Skip
from server import Server, free_port

UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
TIMES = 4


class Client:
    """A client on this machine or at the far end of the link."""

    def __init__(self, link, host, port, is_far):
        self.link, self.host, self.port, self.is_far = link, host, port, is_far

    def connect(self):
        with self.link.far() if self.is_far else contextlib.nullcontext():
            return socket.create_connection((self.host, self.port), timeout=8)

    def get(self, name, port=HTTP, fields="", base=True):
        with self.connect() as s:
            target = f"http://{name}:{port}/" if base else "/"
            s.sendall(f"GET {target} HTTP/1.1\r\nHost: {name}:{port}\r\n{fields}\r\n".encode())
            return status(s)

    def upgrade(self, name, port=HTTP):
        return self.get(name, port, UPGRADE)

    def tunnel(self, name, port=HTTP):
        with self.connect() as s:
            s.sendall(f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())
            opened = status(s)
            if opened != 200:
                return opened
            s.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
            return status(s)

    def decrypted(self, name):
        """Sends a CONNECT to a decrypted host; returns the status of the request inside."""
        with self.connect() as s:
            s.sendall(f"CONNECT {name}:{TLS} HTTP/1.1\r\nHost: {name}:{TLS}\r\n\r\n".encode())
            opened = status(s)
            if opened != 200:
                return opened
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(s, server_hostname=name) as inside:
                inside.sendall(f"GET / HTTP/1.1\r\nHost: {name}:{TLS}\r\n\r\n".encode())
                return status(inside)


def status(s):
    """The status of the next head; 0 if none arrives."""
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            more = s.recv(65536)
            if not more:
                break
            data += more
    except OSError:
        pass
    found = re.match(rb"HTTP/1\.1 (\d{3})", data)
    return int(found[1]) if found else 0


class Look:
    """Sends requests and compares the addresses reached with the permitted ones."""

    def __init__(self, doors):
        self.doors, self.wrong, self.told, self.asked = doors, [], collections.Counter(), 0

    def at(self, what, may, expected, ask, *arguments):
        """`may`: the addresses that may be reached. `expected`: the statuses; None is any."""
        mark = len(self.doors.reached)
        try:
            got = ask(*arguments)
        except OSError as error:
            got = f"{type(error).__name__}"
        self.asked += 1
        self.told[got] += 1
        allowed = {ipaddress.ip_address(address) for address in may}
        reached = [address for address in self.doors.reached[mark:] if address not in allowed]
        if reached:
            self.wrong.append(f"{what} reached {reached[0]} ({got})")
        elif expected and got not in expected:
            self.wrong.append(f"{what}: {got}")


def through_proxy(look, client, who, server):
    kinds = {"GET": client.get, "CONNECT": client.tunnel, "WebSocket": client.upgrade, "decrypted": client.decrypted}
    for kind, ask in kinds.items():
        suffix, reached = (".in.test", ()) if kind == "decrypted" else (".test", (200,))
        for key in FORBIDDEN:
            look.at(f"{who} {kind} {key}", (), (403,), ask, key + suffix)
        for key in OWN:
            may, expected = (("127.0.0.1", "127.8.8.8", "::1", OWN[key]), None) if who == "local" else ((), (403,))
            look.at(f"{who} {kind} {key}", may, expected, ask, key + suffix)
        look.at(f"{who} {kind} allowed", (ALLOWED,), reached, ask, "allowed" + suffix)
        look.at(f"{who} {kind} both", (ALLOWED,), None, ask, f"both-{kind}-{who}".lower() + suffix)
        for turn in ("flip", "flop"):
            for number in range(TIMES):
                for _ in range(3):
                    look.at(f"{who} {kind} {turn}", (ALLOWED,), None, ask, f"{turn}-{kind}-{who}-{number}".lower() + suffix)
    # These requests cannot be observed at the target listeners: the refusal must come from the listener itself, not from another server.
    listeners = {"proxy": server.proxy, "admin": server.admin, "gateway": server.gateway}
    for listener, port in listeners.items():
        for kind in ("GET", "CONNECT", "WebSocket"):
            key = "near" if who == "remote" and listener == "proxy" else "loop"
            look.at(f"{who} {kind} to our {listener} by a name", (), (403,), kinds[kind], f"{key}.test", port)


def through_gateway(look, options, names, link):
    """An upstream declared by name: loopback is then permitted by the owner, forbidden addresses remain forbidden."""
    for key in [*FORBIDDEN, "allowed", "flip-gateway", "flop-gateway", "both-gateway"]:
        server = Server(options.binary, f"{key}.test:{HTTP}", command=names.command)
        client = Client(link, "127.0.0.1", server.gateway, False)
        for kind, fields in {"GET": "", "WebSocket": UPGRADE}.items():
            for _ in range(3 if key.startswith("fl") else 1):
                expected = (200,) if key == "allowed" else (403, 502, 504) if key in FORBIDDEN else None
                look.at(f"gateway {kind} {key}", (ALLOWED,), expected, client.get, "127.0.0.1", server.gateway, fields, False)
        if server.stop() != 0:
            look.wrong.append(f"gateway {key}: the server's end")


async def names(options):
    """Names that a malicious resolver maps to metadata services and this machine, or that change between two look-ups."""
    if not shutil.which("mount"):
        raise Skip("mount")
    with Link() as link:
        link.near(*(f"ip address add {place}/{128 if ':' in place else 32} dev lo" for place in PLACES))
        stub, doors, own = Names(), Doors(), free_port()
        look = Look(doors)
        for who, host in {"local": "127.0.0.1", "remote": NEAR}.items():
            # The configuration permits tunnels to our own port, so that only the address check can refuse them.
            proxy = f'connect_ports: [443, {HTTP}, {TLS}, {own}], intercept: ["*.in.test"], allow: [10.201.0.0/24]'
            server = Server(
                options.binary,
                f"allowed.test:{HTTP}",
                proxy=proxy,
                command=stub.command,
                environment={"ROCKPOOL_PROXY_LISTEN": f"{host}:0", "ROCKPOOL_ADMIN_LISTEN": f"127.0.0.1:{own}"},
            )
            through_proxy(look, Client(link, host, server.proxy, who == "remote"), who, server)
            if not server.alive or server.stop() != 0:
                look.wrong.append(f"{who}: the server's end")
        through_gateway(look, options, stub, link)
        doors.close()
        stub.close()
    for entry, count in collections.Counter(look.wrong).items():
        print("  ", entry, f"({count} ×)" if count > 1 else "")
    told = ", ".join(f"{count} × {got or 'closed'}" for got, count in look.told.most_common(6))
    return Result(
        f"S3: {len(FORBIDDEN)} forbidden addresses and {len(OWN)} of this machine behind names; names that flip",
        "by GET, CONNECT, decrypted, WebSocket, gateway: no connection arrives where none may, 403 where none may go",
        f"{look.asked} requests, {sum(stub.asked.values())} look-ups of names that flip: {told}; "
        f"{len(look.wrong)} wrong{': ' + '; '.join(look.wrong[:6]) if look.wrong else ''}",
        not look.wrong,
    )
