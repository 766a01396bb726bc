"""Random requests of clients with and without credentials, compared with what each may see."""

import asyncio
import os
import random
import re

from origin import Origin
from result import Result
from server import Server, free_port

SEED = int(os.environ.get("HISTORY_SEED", 1))
CONTROLS = (
    "max-age=60",
    "private, max-age=60",
    "no-cache",
    "max-age=0, must-revalidate",
    "no-store",
    "s-maxage=60",
    "public, max-age=60",
    "max-age=1",
    "",
    "max-age=60, stale-while-revalidate=60",
    'no-cache="X-Owner", max-age=60',
    "max-age=0, stale-if-error=600",
)
CREDENTIALS = {
    "A": "Authorization: Bearer token-a\r\n",
    "B": "Authorization: Bearer token-b\r\n",
    "CA": "Cookie: session=aaa\r\n",
    "CB": "Cookie: session=bbb\r\n",
    "KA": "Private-Token: key-a\r\n",
    "KB": "Private-Token: key-b\r\n",
    "": "",
}
OWNERS = "|".join(name for name in CREDENTIALS if name)
# RFC 9111 §3.5, §5.2.2.10: with these directives a response to a request with Authorization is shared; the origin sends them only then.
OPEN = ("public", "s-maxage", "must-revalidate")


def who(head):
    return next((name for name, field in CREDENTIALS.items() if name and field.strip().lower() in head.lower()), "")


class Private(Origin):
    """Responds with the owner and the path of the response; it is shared only if the origin declares it."""

    def __init__(self):
        super().__init__()
        self.chance, self.asked = random.Random(f"{SEED} origin"), 0

    async def answer(self, method, path, head, _):
        owner, control = who(head), self.chance.choice(CONTROLS)
        self.asked += 1
        if any(word in control for word in OPEN):
            owner = "everybody"
        body = f"{path} of {owner or 'nobody'}\n".encode() * 20
        tag = f'"{path}-{owner}"'
        lines = f"ETag: {tag}\r\nX-Owner: {owner or 'nobody'}\r\n" + (f"Cache-Control: {control}\r\n" if control else "")
        if self.chance.random() < 0.2:
            lines += f"Set-Cookie: seen={owner}\r\n"
        if self.chance.random() < 0.3:
            lines += f"Vary: {self.chance.choice(('Accept', 'Cookie', 'Authorization', 'Accept-Encoding', '*'))}\r\n"
        ranged = re.search(r"(?im)^range: bytes=(\d+)-(\d+)", head)
        if tag in head:
            return f"HTTP/1.1 304 Not Modified\r\n{lines}\r\n".encode()
        if ranged and self.chance.random() < 0.7:
            first, last = int(ranged[1]), min(int(ranged[2]), len(body) - 1)
            part = body[first : last + 1]
            return (
                f"HTTP/1.1 206 Partial Content\r\n{lines}Content-Range: bytes {first}-{last}/{len(body)}\r\n"
                f"Content-Length: {len(part)}\r\n\r\n".encode()
                + (part if method != "HEAD" else b"")
            )
        status = self.chance.choice(("200 OK",) * 9 + ("404 Not Found", "401 Unauthorized", "301 Moved Permanently"))
        return f"HTTP/1.1 {status}\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + (body if method != "HEAD" else b"")


async def histories(options):
    """HISTORY random requests with two tokens, two cookies, two keys and none: nobody sees a body or field of another (HISTORY_SEED)."""
    count, port, private = int(os.environ.get("HISTORY", 100_000)), free_port(), Private()
    await private.open(port)
    server = Server(options.binary, port, policy="offline-first", limits="requests_per_connection: 1000000", storage="memory_limit: 8 MB")
    paths = int(os.environ.get("HISTORY_PATHS", 60))
    leaks, statuses, hits, sent, chance = [], {}, 0, 0, random.Random(f"{SEED} clients")

    async def client(name):
        nonlocal hits, sent
        reader = writer = None
        while sent < count:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.gateway)
            path, method = f"/p{chance.randrange(paths)}", chance.choice(("GET",) * 8 + ("HEAD",))
            fields = chance.choice(
                ("",) * 5
                + (
                    "Cache-Control: no-cache\r\n",
                    "Cache-Control: max-stale\r\n",
                    "Range: bytes=0-30\r\n",
                    "Accept: text/plain\r\n",
                    "Cache-Control: only-if-cached\r\n",
                    f'If-None-Match: "{path}-{name}"\r\n',
                )
            )
            sent += 1
            try:
                writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{CREDENTIALS[name]}{fields}\r\n".encode())
                head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode("latin-1")
                status = int(head[9:12])
                length = re.search(r"(?im)^content-length: (\d+)", head)
                body = await reader.readexactly(int(length[1])) if length and method != "HEAD" and status != 304 else b""
                chunked = not length and "chunked" in head.lower() and method != "HEAD" and status != 304
                while chunked and not body.endswith(b"0\r\n\r\n"):
                    body += await reader.read(4096)
            except (TimeoutError, asyncio.IncompleteReadError, OSError):
                writer.close()
                writer, status, head, body = None, 0, "", b""
            statuses[status] = statuses.get(status, 0) + 1
            hits += "; hit" in head
            others = set(re.findall(rf"of ({OWNERS})$", body.decode("latin-1"), re.M))
            others |= set(re.findall(rf"(?im)^(?:x-owner: |set-cookie: seen=)({OWNERS})\r", head))
            wrong_path = body and f"{path} of" not in body.decode("latin-1") and status in (200, 404)
            if others - {name} or wrong_path:
                leaks.append((name, method, path, fields.strip(), status, others, head))
            if status == 0 and not server.alive:
                return

    async def weather():
        """The origin is unreachable for one second in five."""
        while True:
            await asyncio.sleep(4)
            await private.close()
            await asyncio.sleep(1)
            await private.open(port)

    clouds = asyncio.create_task(weather())
    await asyncio.gather(*(client(name) for name in CREDENTIALS for _ in range(4)))
    clouds.cancel()
    fast = server.metric("rockpool_hot_hits_total")
    for leak in leaks[:5]:
        print("  ", *leak)
    met = not leaks and server.alive and server.stop() == 0 and hits > count / 20 and statuses.get(200, 0) > count / 3
    await private.close()
    told = ", ".join(f"{number} × {status or 'none'}" for status, number in sorted(statuses.items(), key=lambda pair: -pair[1])[:6])
    return Result(
        f"R5: {sent:,} random requests of two tokens, two cookies, two keys and nobody, the origin away every fifth second",
        "no body or field of one ever seen by another",
        f"{len(leaks)} seen; {hits:,} from the cache, {fast:,.0f} of them on the fast path, {private.asked:,} at the origin; {told}",
        met,
    )
