"""The origin of the integrity run: nginx with keep-alive, which sends the same files in every way, and the expected bodies."""

import base64
import collections
import hashlib
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from result import Skip
from server import free_port

# By name: bytes, and the number of different files. All of one size have the same ETag, as nginx derives it from time and length.
SIZES = {"1 KB": (1_000, 16), "100 KB": (100_000, 16), "1 MB": (1_000_000, 8), "8 MB": (8_000_000, 4), "30 MB": (30_000_000, 2)}
# The ways to send a body: the locations, available on every listener.
WAYS = ("stored", "no-store", "chunked", "close-delimited", "gzip")
LISTENERS = ("plain", "tls", "h2")
NEVER = "sub_filter '<no file has this>' ''; sub_filter_once off; sub_filter_types *; sub_filter_last_modified on;"
KEPT = "add_header Cache-Control max-age=600;"
# A filter without a match removes the length, so that the body is sent in chunks.
LOCATIONS = {
    "stored": KEPT,
    "no-store": "add_header Cache-Control no-store;",
    "chunked": KEPT + NEVER,
    "close-delimited": KEPT + NEVER + "chunked_transfer_encoding off;",
    "gzip": KEPT + "gzip on; gzip_types *; gzip_min_length 0; gzip_comp_level 1; gzip_vary on; gzip_proxied any;",
}
NGINX = """
daemon off; master_process off; pid {home}/pid; error_log {home}/error.log; events {{ worker_connections 4096; }}
http {{
  log_format sent "$request_uri $body_bytes_sent"; access_log {home}/access.log sent; client_body_temp_path {home}/body;
  proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
  types {{ }} default_type application/octet-stream; sendfile on; tcp_nopush on; keepalive_timeout 65;
  server {{
    listen 127.0.0.1:{plain}; listen 127.0.0.1:{tls} ssl; listen 127.0.0.1:{h2} ssl http2;
    ssl_certificate {home}/site.pem; ssl_certificate_key {home}/site.key;
    {locations}
  }}
}}
"""


class Files:
    """The bodies, all different, and a check of received ones."""

    def __init__(self, home, seed):
        chance, self.bodies = random.Random(seed), {}
        for label, (size, count) in SIZES.items():
            for number in range(count):
                name = f"{label.replace(' ', '')}-{number}"
                self.bodies[name] = base64.b64encode(chance.randbytes(size * 3 // 4 + 3))[:size]
                Path(home, name).write_bytes(self.bodies[name])
        self.hashes = {name: hashlib.sha256(body).digest() for name, body in self.bodies.items()}

    def pick(self, size, chance):
        return f"{size.replace(' ', '')}-{chance.randrange(SIZES[size][1])}"

    def fault(self, name, body, whole=True):
        """None, or ("wrong" or "short", a description). A partially read body only needs to be a prefix of the file."""
        meant = self.bodies[name]
        if whole and hashlib.sha256(body).digest() == self.hashes[name] or not whole and meant.startswith(body):
            return None
        at = same(meant, body)
        if at == len(body) < len(meant):
            return "short", f"ends after {at:,} of {len(meant):,}"
        return "wrong", f"{len(body):,} of {len(meant):,} bytes, from {at:,} on not its own: {self.whence(name, bytes(body[at : at + 40]))}"

    def whence(self, name, piece):
        """Describes the origin of wrong bytes."""
        for other in (name, *self.bodies):
            if len(piece) >= 16 and (found := self.bodies[other].find(piece)) >= 0:
                return f"those of {'its own' if other == name else other} at {found:,}"
        return repr(piece)


def same(one, other):
    """The length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


class Nginx:
    """nginx on three ports: plain, TLS, and TLS with HTTP/2."""

    def __init__(self, seed):
        if missing := [name for name in ("nginx", "openssl") if not shutil.which(name)]:
            raise Skip(" and ".join(missing))
        self.home = tempfile.mkdtemp(prefix="rpf-whole-")
        self.process = None
        Path(self.home, "files").mkdir()
        self.files, self.ports = Files(f"{self.home}/files", seed), {name: free_port() for name in LISTENERS}
        self.ca = f"{self.home}/ca.pem"
        self.certify()
        locations = " ".join(f"location /{way}/ {{ alias {self.home}/files/; {says} }}" for way, says in LOCATIONS.items())
        config = Path(self.home, "nginx.conf")
        config.write_text(NGINX.format(home=self.home, locations=locations, **self.ports))
        with open(f"{self.home}/errors", "w") as errors:
            self.process = subprocess.Popen(["nginx", "-p", self.home, "-c", str(config)], stderr=errors)
        self.ready()

    def certify(self):
        """Makes an authority, and its certificate for localhost."""
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout")
        Path(self.home, "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        for words in (
            ("req", "-x509", *key, "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=whole"),
            ("req", *key, "site.key", "-out", "site.csr", "-subj", "/CN=localhost"),
            (
                "x509",
                "-req",
                "-in",
                "site.csr",
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-out",
                "site.pem",
                "-days",
                "2",
                "-extfile",
                "names",
            ),
        ):
            subprocess.run(["openssl", *words], check=True, cwd=self.home, capture_output=True)

    def ready(self):
        end = time.monotonic() + 10
        while time.monotonic() < end and self.process.poll() is None:
            try:
                for port in self.ports.values():
                    socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        said = Path(self.home, "errors").read_text()[:300]
        self.close()
        raise Skip(f"an nginx that starts: {said}")

    def origin(self, listener):
        return f"http://127.0.0.1:{self.ports['plain']}" if listener == "plain" else f"https://localhost:{self.ports[listener]}"

    def sent(self):
        """The body bytes sent, by target."""
        found = collections.Counter()
        for line in Path(self.home, "access.log").read_text(errors="replace").splitlines():
            target, size = line.rsplit(" ", 1)
            found[target] += int(size)
        return found

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
