"""The origin: files and headers served by a small nginx, which counts its requests. Each proxy has an origin of its own."""

import hashlib
import http.client
import json
import os
import subprocess
import time

from servers import BenchmarkError, Server, free_ports

SIZES = {"1k": 1024, "100k": 100 * 1024, "1m": 1024 * 1024}
ITEM = json.dumps({"id": 42, "title": "low water", "body": "x" * 960}).encode()

CONFIGURATION = """
daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit; {user}
events {{ worker_connections 4096; }}
http {{
    access_log off; sendfile on; keepalive_requests 100000000; default_type application/json;
    client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
    open_file_cache max=100 inactive=1h; open_file_cache_valid 1h;
    ssl_certificate leaf.pem; ssl_certificate_key leaf.key; http2_max_requests 100000000;
    server {{
        listen 127.0.0.1:{port} backlog=4096; root {files};
        listen 127.0.0.1:{items} backlog=4096;
        listen 127.0.0.1:{secure} ssl backlog=4096;
        listen 127.0.0.1:{h2} ssl http2 backlog=4096;
        location /hit/ {{ add_header Cache-Control "public, max-age=3600"; }}
        location /private/ {{ rewrite ^/private/(.*) /hit/$1 break; add_header Cache-Control "private, max-age=3600"; }}
        location /stale/ {{ rewrite ^/stale/(.*) /hit/$1 break; add_header Cache-Control "public, max-age=1"; }}
        location /store/ {{ rewrite ^ /hit/1k break; add_header Cache-Control "public, max-age=3600"; }}
        location /pass/ {{ rewrite ^/pass/(.*) /hit/$1 break; add_header Cache-Control "no-store"; }}
        location /validated/ {{ rewrite ^/validated/(.*) /hit/$1 break; add_header Cache-Control "no-cache"; }}
        location /items/ {{ rewrite ^ /hit/item break; add_header Cache-Control "no-cache"; }}
        location /write/ {{ return 204; }}
        location = /count {{ stub_status; }}
    }}
}}
"""


class Origin:
    """Serves, in plaintext, over TLS (`secure`) and over HTTP/2 (`h2`): /hit/SIZE (storable), /stale/SIZE (stale after a second),
    /private/SIZE, /pass/SIZE (`no-store`), /validated/SIZE (`no-cache`, with an ETag), /store/ANYTHING (1 KB, storable) and /items/ID
    (JSON, `no-cache`, also on the port `items`); takes writes at /write/ANYTHING."""

    def __init__(self, folder, files, core):
        self.port, self.items, self.secure, self.h2 = free_ports(4)
        write_certificate(folder)
        self.certificate = os.path.join(folder, "leaf.pem")
        ports = {"port": self.port, "items": self.items, "secure": self.secure, "h2": self.h2}
        with open(os.path.join(folder, "nginx.conf"), "w") as file:
            file.write(CONFIGURATION.format(files=files, user=nginx_user(), **ports))
        self.server = Server("origin", ["nginx", "-p", folder, "-e", "stderr", "-c", "nginx.conf"], [self.port], core, folder)

    def requests_served(self):
        """The number of requests it has received, including this one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", "/count")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        if len(lines) < 3:
            raise BenchmarkError("the origin does not count its requests")
        return int(lines[2].split()[2])

    def settled(self):
        """The number of requests once no more arrive from the previous round: requests that wrk abandoned are still in transit."""
        deadline = time.monotonic() + 10
        count = self.requests_served()
        while time.monotonic() < deadline:
            time.sleep(0.05)
            later = self.requests_served()
            if later == count + 1:
                return later
            count = later
        raise BenchmarkError("requests go on arriving at the origin although nobody asks")


def write_bodies(folder):
    """Writes the bodies that all origins serve; returns their SHA-256 by size."""
    digests = {"empty": hashlib.sha256(b"").hexdigest()}
    os.makedirs(os.path.join(folder, "hit"))
    for name, size in SIZES.items():
        body = os.urandom(size)  # Incompressible: every proxy transfers the same bytes.
        digests[name] = hashlib.sha256(body).hexdigest()
        digests[f"{name}-range"] = hashlib.sha256(body[100:300]).hexdigest()
        with open(os.path.join(folder, "hit", name), "wb") as file:
            file.write(body)
    digests["item"] = hashlib.sha256(ITEM).hexdigest()
    with open(os.path.join(folder, "hit", "item"), "wb") as file:
        file.write(ITEM)
    return digests


def write_certificate(folder):
    """Writes `leaf.pem` and `leaf.key` for this machine, with the kind of key that Rockpool's certificates have."""
    request = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*request.split(), *names, "-keyout", "leaf.key", "-out", "leaf.pem"], cwd=folder, check=True, capture_output=True)


def nginx_user():
    """Started as root, nginx would switch to a user without access to our folder."""
    return "user root;" if os.geteuid() == 0 else ""
