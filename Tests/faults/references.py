"""Three independent parsers that report how they interpret a byte stream: llhttp (Node), nginx and HAProxy."""

import base64
import json
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from recorder import Recorder
from result import Skip
from server import free_port

# Fields of the proxy's own connection, or recomputed ones; `Content-Length` is compared as the length of the body.
OWN = {
    "host",
    "connection",
    "keep-alive",
    "te",
    "transfer-encoding",
    "content-length",
    "expect",
    "upgrade",
    "proxy-connection",
    "x-reference-port",
}
LAST = "/the-last-one"
NODE = """
const server = require('http').createServer({ insecureHTTPParser: false, maxHeaderSize: 1 << 20, keepAliveTimeout: 300000 }, (req, res) => {
  const parts = [], port = req.socket.remotePort
  req.on('data', part => parts.push(part))
  req.on('end', () => {
    const fields = []
    for (let i = 0; i < req.rawHeaders.length; i += 2) fields.push([req.rawHeaders[i], req.rawHeaders[i + 1]])
    const body = Buffer.concat(parts).toString('base64')
    console.log(JSON.stringify({ port, method: req.method, target: req.url, fields, body }))
    res.end('ok')
  })
})
server.maxHeadersCount = 0
server.listen(Number(process.argv[2]), '127.0.0.1')
"""
NGINX = """
daemon off; master_process off; pid {home}/pid; error_log {home}/error.log; events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u;
  scgi_temp_path {home}/s; keepalive_requests 1000000; keepalive_timeout 300; large_client_header_buffers 16 128k; client_max_body_size 0;
  ignore_invalid_headers off; underscores_in_headers on;
  server {{ listen 127.0.0.1:{port}; location / {{
    proxy_pass http://127.0.0.1:{back}; proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection "";
    proxy_set_header X-Reference-Port $remote_port; }} }}
}}
"""
HAPROXY = """
global
  maxconn 500
  tune.bufsize 262144
  tune.maxrewrite 1024
  tune.http.maxhdr 1000
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
frontend f
  bind 127.0.0.1:{port}
  http-request set-header X-Reference-Port %[src_port]
  default_backend b
backend b
  server s 127.0.0.1:{back}
"""


@dataclass
class Understood:
    method: bytes
    target: bytes
    host: list
    fields: list
    body: bytes

    @classmethod
    def of(cls, method, target, fields, body):
        named = [(name.decode("latin-1").lower(), value) for name, value in fields]
        return cls(method, target, [v for n, v in named if n == "host"], [(n, v) for n, v in named if n not in OWN], body)

    @classmethod
    def said(cls, message):
        return cls.of(*message.parts[:2], message.fields, message.body)

    def differences(self, other):
        """Returns the parts that differ in `other`, as text."""
        return [
            f"{part} {getattr(other, part)!r:.120} for {getattr(self, part)!r:.120}"
            for part in ("method", "target", "host", "body", "fields")
            if getattr(self, part) != getattr(other, part)
        ]


class Reference:
    """A server that parses the data of `ask` and reports its interpretation, directly or through a recorder behind it."""

    def __init__(self, name):
        if not shutil.which("node" if name == "llhttp" else name):
            raise Skip({"llhttp": "node"}.get(name, name))
        self.name, self.port, self.home, self.told = name, free_port(), tempfile.mkdtemp(prefix="rpf-reference-"), {}
        self.back = None if name == "llhttp" else Recorder()
        config, text = Path(self.home, "config"), {"llhttp": NODE, "nginx": NGINX, "haproxy": HAPROXY}[name]
        config.write_text(text if name == "llhttp" else text.format(home=self.home, port=self.port, back=self.back.port))
        command = {
            "llhttp": ["node", str(config), str(self.port)],
            "nginx": ["nginx", "-p", self.home, "-c", str(config)],
            "haproxy": ["haproxy", "-db", "-q", "-f", str(config)],
        }[name]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(f"{self.home}/errors", "w"))
        threading.Thread(target=self.listen, daemon=True).start()
        self.ready()

    def ready(self):
        end = time.monotonic() + 10
        while time.monotonic() < end and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        said = Path(self.home, "errors").read_text()[:300]
        self.close()
        raise Skip(f"a {self.name} that starts: {said}")

    def listen(self):
        for line in self.process.stdout:
            told = json.loads(line)
            fields = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in told["fields"]]
            understood = Understood.of(told["method"].encode(), told["target"].encode("latin-1"), fields, base64.b64decode(told["body"]))
            self.told.setdefault(told["port"], []).append(understood)

    def understood(self, port):
        if not self.back:
            return list(self.told.get(port, []))
        with self.back.lock:
            whole = [piece.message for piece in self.back.pieces]
        return [Understood.said(m) for m in whole if m.values("X-Reference-Port") == [str(port).encode()]]

    def ask(self, data, ends=True, patience=4.0):
        """Returns (its interpretation of `data`, the status of its last response); `ends` is true if the last request is `LAST`."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as peer:
            port, answers, last = peer.getsockname()[1], b"", time.monotonic()
            self.told.pop(port, None)
            if self.back:
                self.back.pieces.clear()
            peer.sendall(data)
            peer.settimeout(0.05)
            while time.monotonic() - last < patience:
                found = self.understood(port)
                if ends and found and found[-1].target == LAST.encode():
                    break
                try:
                    more = peer.recv(1 << 18)
                    if not more:
                        break
                    answers, last = answers + more, time.monotonic()
                except TimeoutError:
                    continue
                except OSError:
                    break
            statuses = re.findall(rb"HTTP/1\.1 (\d{3})", answers)
            return self.understood(port), int(statuses[-1]) if statuses else 0

    def close(self):
        self.process.kill()
        self.process.wait()
        if self.back:
            self.back.close()
        shutil.rmtree(self.home, ignore_errors=True)
