#!/usr/bin/env python3
"""A tiny API for trying Rockpool: GET reads a document, PUT stores one. Usage: example-api.py [PORT]; 8000 without one."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DOCUMENTS = {"/notes/1": b'{"title": "Low tide"}\n'}


class Notes(BaseHTTPRequestHandler):
    def do_GET(self):
        body = DOCUMENTS.get(self.path)
        self.answer(404 if body is None else 200, body or b"{}\n")

    def do_PUT(self):
        DOCUMENTS[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, DOCUMENTS[self.path])

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000), Notes).serve_forever()
