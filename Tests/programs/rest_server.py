"""A repository of restic behind its REST protocol: rest_server.py PORT DIRECTORY."""

import http.server
import json
import os
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def place(self):
        return os.path.join(sys.argv[2], *[part for part in self.path.split("?")[0].split("/") if part])

    def answer(self, status, body=b"", kind="application/octet-stream", **fields):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", fields.pop("length", str(len(body))))
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        place = self.place()
        if self.path.endswith("/"):
            names = sorted(os.listdir(place)) if os.path.isdir(place) else []
            sizes = [{"name": name, "size": os.path.getsize(os.path.join(place, name))} for name in names]
            return self.answer(200, json.dumps(sizes).encode(), "application/vnd.x.restic.rest.v2")
        if not os.path.isfile(place):
            return self.answer(404)
        with open(place, "rb") as file:
            data = file.read()
        span = self.headers.get("Range", "")
        if not span or self.command == "HEAD":
            return self.answer(200, data)
        first, _, last = span.removeprefix("bytes=").partition("-")
        end = min(int(last or len(data) - 1), len(data) - 1)
        self.answer(206, data[int(first) : end + 1], Content_Range=f"bytes {first}-{end}/{len(data)}")

    do_HEAD = do_GET

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        place = self.place()
        if self.path.endswith("?create=true"):
            for name in ["data", "index", "keys", "locks", "snapshots"]:
                os.makedirs(os.path.join(place, name), exist_ok=True)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(data)
        self.answer(200)

    def do_DELETE(self):
        if os.path.isfile(self.place()):
            os.remove(self.place())
        self.answer(200)

    def do_OPTIONS(self):
        self.answer(200)

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
