"""The admin API's listener: every combination of values that a page in a browser could send."""

import itertools
import socket
from pathlib import Path

from origin import origin
from result import Result
from server import Server, free_port

METHODS = {"GET": "/v1/status", "PUT": "/v1/network", "POST": "/v1/storage/cleanup", "DELETE": "/v1/cache?prefix=http://nothing.test/"}
SITES = (None, "none", "same-origin", "same-site", "cross-site")
TYPES = (None, "application/json", "text/plain", "application/x-www-form-urlencoded")
BODIES = {"PUT": b'{"mode": "auto"}', "POST": b'{"dryRun": true}'}


async def admin(options):
    """{Host} × {Origin} × {Sec-Fetch-Site} × {method} × {token} × {content type}: only permitted rows succeed; bodies need JSON."""
    port = free_port()
    await origin(port)
    server = Server(options.binary, port)
    token, own = Path(server.scratch, "state/admin-token").read_text().strip(), f"127.0.0.1:{server.admin}"
    # A value, and whether it is permitted.
    hosts = {
        own: True,
        f"localhost:{server.admin}": True,
        "evil.test": False,
        f"127.0.0.1.evil.test:{server.admin}": False,
        f"169.254.169.254:{server.admin}": False,
        "": False,
    }
    tokens = {
        None: False,
        f"Bearer {token}": True,
        f"Bearer {token[:-1]}": False,
        f"Bearer {token}x": False,
        "Bearer ": False,
        f"Basic {token}": False,
        f"Bearer {token[::-1]}": False,
    }
    wrong, passed, count = [], 0, 0
    connection = connect(server.admin)
    for host, method, site, sent, kind in itertools.product(hosts, METHODS, SITES, tokens, TYPES):
        for source in (None, f"http://{host}", "null", "https://evil.test", f"https://{host}", f"http://{host}.evil.test"):
            may = (
                hosts[host]
                and source in (None, f"http://{host}")
                and site in (None, "none", "same-origin")
                and (method == "GET" or tokens[sent])
                and (method not in BODIES or kind == "application/json")
            )
            fields = {"Origin": source, "Sec-Fetch-Site": site, "Authorization": sent, "Content-Type": kind}
            lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value is not None)
            body = BODIES.get(method, b"")
            request = f"{method} {METHODS[method]} HTTP/1.1\r\nHost: {host}\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body
            try:
                connection.sendall(request)
                status, head, closes = answer(connection)
            except OSError:
                status, head, closes = 0, b"", True
            if closes:
                connection.close()
                connection = connect(server.admin)
            count, passed = count + 1, passed + (status // 100 == 2)
            if (status // 100 == 2) != may or not may and status // 100 != 4 or b"access-control" in head.lower():
                wrong.append((status, method, host, fields))
    connection.close()
    for entry in wrong[:5]:
        print("  ", *entry)
    return Result(
        "S2: {6 Host} × {6 Origin} × {5 Sec-Fetch-Site} × {4 methods} × {7 tokens} × {4 content types}",
        "only the allowed rows pass, every other is 4xx, none names another site in Access-Control",
        f"{count:,} requests, {passed:,} passed, {len(wrong)} wrong",
        not wrong and server.stop() == 0,
    )


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def answer(connection):
    """(status, head, True if the connection ends)."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return int(data[9:12] or 0), data, True
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    named = head.lower()
    length = int(named.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
    while b"transfer-encoding: chunked" in named and not body.endswith(b"0\r\n\r\n") or len(body) < length:
        body += connection.recv(65536)
    return int(head[9:12]), head, b"connection: close" in named
