"""An API that keeps, for each entity, the list of the values that it was sent: nothing is lost, doubled or out of order unseen."""

import json
import select
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Upstream:
    """`honoursKeys`: a repeated idempotency key has one effect. `delay`: seconds before the answer to a POST, after the effect; `reading`:
    seconds before that to a GET. A change counts for requests under way too."""

    def __init__(self):
        self.lists, self.answers, self.requests, self.delay, self.isAway = {}, {}, [], 0.0, False
        self.honoursKeys, self.reading, self.documents, self.reads = True, 0.0, {}, 0
        self.lock = threading.Lock()
        self.running = {}
        self.overlaps, self.collisions = 0, []
        # Seconds for which an answer to a GET is fresh.
        self.lifetime = 0
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
                if self.command == "GET" and upstream.lifetime:
                    self.send_header("Cache-Control", f"max-age={upstream.lifetime}")
                self.end_headers()
                self.wfile.write(body)

            def pause(self, span=lambda: upstream.delay):
                """Waits for the delay; ends when the client goes."""
                begun = time.monotonic()
                while (left := begun + span() - time.monotonic()) > 0:
                    if select.select([self.connection], [], [], min(left, 0.1))[0] and not self.connection.recv(1, socket.MSG_PEEK):
                        with upstream.lock:
                            upstream.broken.append(time.monotonic())
                        return

            def do_GET(self):
                if upstream.isAway:
                    return self.answer(503, {})
                path = urlsplit(self.path).path
                with upstream.lock:
                    upstream.reads += 1
                    known = upstream.documents.get(path, list(upstream.lists.get(path, [])))
                self.pause(lambda: upstream.reading)
                try:
                    self.answer(200, known)
                except OSError:
                    self.close_connection = True

            def read(self):
                """The body; None if the client died before its end, for then it is no request."""
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                self.close_connection |= len(body) < length
                return body.decode() if len(body) == length else None

            def do_PUT(self):
                if (value := self.read()) is None:
                    return
                path = urlsplit(self.path).path
                document = json.loads(value) if "json" in self.headers.get("Content-Type", "") else value
                with upstream.lock:
                    upstream.requests.append((time.monotonic(), path, value, None, self.headers.get("Via", "")))
                    upstream.documents[path] = document
                try:
                    self.answer(200, document)
                except OSError:
                    self.close_connection = True

            def do_POST(self):
                if (value := self.read()) is None:
                    return
                if upstream.isAway:
                    return self.answer(503, {})
                key = self.headers.get("Idempotency-Key")
                # Through a parent proxy the target is a whole URL.
                path = urlsplit(self.path).path
                upstream.begin(path, value, key, self.headers.get("Via", ""))
                try:
                    self.pause()
                    self.answer(200, {"kept": value})
                except OSError:
                    self.close_connection = True
                finally:
                    with upstream.lock:
                        upstream.running[path].remove(value)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # A client that dies in a request is what these tests are about.
        self.server.handle_error = lambda *_: None
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def begin(self, path, value, key, via):
        with self.lock:
            self.requests.append((time.monotonic(), path, value, key, via))
            running = self.running.setdefault(path, [])
            if running:
                self.overlaps += 1
                self.collisions.append((path, value, list(running)))
            running.append(value)
            if not self.honoursKeys or key is None or key not in self.answers:
                self.answers[key] = value
                self.lists.setdefault(path, []).append(value)

    def effects(self):
        with self.lock:
            return {path: list(values) for path, values in self.lists.items()}

    def repeated(self):
        """The requests that came more than once."""
        with self.lock:
            seen = [(path, value) for _, path, value, _, _ in self.requests]
        return [request for request in set(seen) if seen.count(request) > 1]
