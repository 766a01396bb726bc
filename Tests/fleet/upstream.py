"""An API that keeps, for each entity, the list of the values that it was sent: nothing is lost, doubled or out of order unseen."""

import json
import select
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Upstream:
    """`honoured`: a repeated idempotency key has one effect. `delay`: seconds before the answer, after the effect."""

    def __init__(self):
        self.lists, self.answers, self.requests, self.delay, self.isAway = {}, {}, [], 0.0, False
        self.lock = threading.Lock()
        self.running = {}
        self.overlaps = 0
        # When a client gave up before its answer.
        self.broken = []
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

            def answer(self, status, document):
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def pause(self):
                """Waits for the delay; ends when the client goes."""
                end = time.monotonic() + upstream.delay
                while (left := end - time.monotonic()) > 0:
                    if select.select([self.connection], [], [], min(left, 0.1))[0] and not self.connection.recv(1, socket.MSG_PEEK):
                        with upstream.lock:
                            upstream.broken.append(time.monotonic())
                        return

            def do_GET(self):
                if upstream.isAway:
                    return self.answer(503, {})
                with upstream.lock:
                    self.answer(200, upstream.lists.get(self.path, []))

            def do_POST(self):
                value = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                if upstream.isAway:
                    return self.answer(503, {})
                key = self.headers.get("Idempotency-Key")
                with upstream.lock:
                    upstream.requests.append((time.monotonic(), self.path, value, key, self.headers.get("Via", "")))
                    upstream.running[self.path] = upstream.running.get(self.path, 0) + 1
                    upstream.overlaps += upstream.running[self.path] > 1
                    if key not in upstream.answers:
                        upstream.answers[key] = value
                        upstream.lists.setdefault(self.path, []).append(value)
                try:
                    self.pause()
                    self.answer(200, {"kept": value})
                except OSError:
                    self.close_connection = True
                finally:
                    with upstream.lock:
                        upstream.running[self.path] -= 1

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def effects(self):
        with self.lock:
            return {path: list(values) for path, values in self.lists.items()}
