"""An upstream that sends secrets, and clients that send them in every possible place."""

import asyncio
import json

from origin import Origin, exchange

RESOURCES = (
    'resources: [{ collection: /v1/notes, item: "/v1/notes/{id}" }, { collection: /v1/asked, item: "/v1/asked/{id}", conflict: ask }]'
)
CONTROLS = {"/pub": "public, max-age=60", "/short": "private, max-age=1"}
JSON = "Content-Type: application/json\r\n"


class Indiscreet(Origin):
    """Puts secrets into its responses; `mood` determines its response to writes."""

    def __init__(self, planted):
        super().__init__()
        self.planted, self.mood, self.version, self.taken = planted, "good", 1, 0

    async def answer(self, method, target, head, body):
        value, path = self.planted.words, target.split("?")[0]
        if path == "/broken":
            return f"HTTP/1.1 200 OK\r\nX-A: b\r\nSet-Cookie {value['broken line']}\r\n\r\n".encode()
        if path == "/reason":
            return f"HTTP/1.1 599 {value['reason phrase']}\r\nContent-Length: 0\r\n\r\n".encode()
        if path in ("/login", "/token"):
            tokens = {"access_token": value["issued access token"], "refresh_token": value["issued refresh token"]}
            return self.whole(200, json.dumps(tokens), "Cache-Control: max-age=60\r\n" + JSON)
        if method == "POST" and "/lost" in path:
            raise asyncio.IncompleteReadError(b"", 1)
        if method in ("POST", "PUT", "PATCH", "DELETE"):
            self.taken += 1
            return self.written(value, path)
        control = next((says for start, says in CONTROLS.items() if path.startswith(start)), "private, max-age=60")
        lines = f'Cache-Control: {control}\r\nETag: "v{self.version}"\r\n' + JSON
        if path.startswith("/set"):
            lines += f"Set-Cookie: sid={value['set-cookie']}; HttpOnly\r\n"
        note = {"id": 1, "title": f"theirs {self.version}", "answer": value["private answer"]} if path.startswith(("/v1", "/set")) else {}
        return self.whole(200, json.dumps(note), lines, method)

    def written(self, value, path):
        moods = {
            "auth": (401, f'WWW-Authenticate: Bearer realm="{value["challenge"]}"\r\n'),
            "refuse": (422, ""),
            "conflict": (412, ""),
            "elsewhere": (307, f"Location: http://other.test/cb?access_token={value['token in a location']}\r\n"),
            "good": (200, f"Set-Cookie: sid={value['set-cookie of a write']}\r\n"),
        }
        mood = "conflict" if path.startswith("/v1/asked") and self.mood != "auth" else self.mood
        status, lines = moods[mood]
        return self.whole(status, "{}", lines + JSON)

    @staticmethod
    def whole(status, body, lines, method="GET"):
        return (f"HTTP/1.1 {status} X\r\n{lines}Content-Length: {len(body)}\r\n\r\n" + (body if method != "HEAD" else "")).encode()


def credentials(planted):
    """Fields with credentials, by kind of credential."""
    value = planted.words
    named = {
        "x-api-key": "X-Api-Key",
        "x-auth-token": "X-Auth-Token",
        "x-access-token": "X-Access-Token",
        "private-token": "Private-Token",
        "dpop": "DPoP",
        "x-csrf-token": "X-CSRF-Token",
        "x-amz-security-token": "X-Amz-Security-Token",
        "identity field": "X-Tenant-Key",
    }
    named = {name: field for name, field in named.items() if name in planted}
    return {
        "bearer": f"Authorization: Bearer {value['bearer']}\r\n",
        "basic": f"Authorization: Basic {planted.basic('basic')}\r\n",
        "cookie": f"Cookie: a=b; session={value['cookie']}\r\n",
    } | {n: f"{field}: {value[n]}\r\n" for n, field in named.items()}


async def read(server, planted, port):
    """Hits and misses through both listeners, with valid, unusual and refused requests."""
    value = planted.words
    queries = [
        f"/pub/q?access_token={value['access_token of a read']}",
        f"/pub/k?page=1&api_key={value['api_key of a read']}",
        f"/pub/s?X-Amz-Signature={value['signature of a read']}&X-Amz-Expires=60",
        f"/none?access_token={value['access_token of a miss']}",
    ]
    for fields in ["", *credentials(planted).values()]:
        for path in ("/pub/a", "/set/a", "/short/a", "/v1/notes/1", "/v1/asked/1", "/v1/notes", *queries, "/broken", "/reason"):
            for _ in range(2):
                await exchange(server.gateway, "GET", path, fields)
    await exchange(server.gateway, "GET", "/pub/a", f"Referer: http://x.test/?token={value['referer']}\r\n")
    form = "Content-Type: application/x-www-form-urlencoded\r\n" + credentials(planted)["bearer"]
    for path in ("/login", "/token"):
        await exchange(server.gateway, "POST", path, form, b"a=b")
        await exchange(server.gateway, "GET", path, credentials(planted)["bearer"])
    base = f"http://127.0.0.1:{port}"
    proxied = f"Proxy-Authorization: Basic {planted.basic('proxy authorization')}\r\n"
    for target in (
        f"{base}/pub/p?access_token={value['access_token through the proxy']}",
        f"http://user:{value['userinfo']}@127.0.0.1:{port}/pub/p",
        f"{base}/pub/f#password={value['password in a fragment']}",
        "http://nowhere.test/",
    ):
        await exchange(server.proxy, "GET", target, proxied + credentials(planted)["bearer"])
    for target in (f"127.0.0.1:{port}", f"user:{value['userinfo of connect']}@127.0.0.1:443"):
        await exchange(server.proxy, "CONNECT", target, proxied)
    for broken in (
        " : x\r\n",
        "Content-Length: x\r\n",
        "Transfer-Encoding: x\r\n",
        "X: \x01\r\n",
        "Connection: Authorization\r\n",
        "Host: other\r\n",
        "X-Long: " + "a" * 40_000 + "\r\n",
    ):
        await exchange(server.gateway, "GET", "/pub/a", "".join(credentials(planted).values()) + broken)


async def write(server, planted, turn):
    """One write with each credential, to declared and undeclared resources."""
    value = planted.words
    body, asked = json.dumps({"password": value["password in a body"]}), json.dumps({"title": value["password in a conflict"]})
    for number, fields in enumerate(["", *credentials(planted).values()]):
        fields += JSON
        key = f'Idempotency-Key: "{value["idempotency key"]}-{turn}-{number}"\r\n'
        await exchange(server.gateway, "PUT", f"/v1/notes/{turn}{number}", fields + key, body.encode())
        await exchange(server.gateway, "POST", f"/v1/notes?access_token={value['access_token of a write']}", fields, body.encode())
        await exchange(server.gateway, "PATCH", f"/v1/asked/1{number if turn else ''}", fields, asked.encode())
    free = f"/free?access_token={value['access_token of a write without a resource']}"
    await exchange(server.gateway, "POST", free, JSON, body.encode())
    await exchange(server.gateway, "POST", f"/lost/{turn}", JSON + credentials(planted)["bearer"], body.encode())
