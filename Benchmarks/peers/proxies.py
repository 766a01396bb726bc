"""The compared proxies: each configured by its own documentation for one core, with an in-memory cache where available."""

import os
import pwd

from origin import nginx_user, write_certificate
from servers import Server, free_ports


class Proxy:
    """A running proxy. `gateway` replaces the origin, `secure` too, with TLS and HTTP/2, if supported; `forward`, if supported, takes
    absolute-form targets. `away` replaces an origin that is stopped once its response is stored; `from_tls` and `from_h2` lead to the
    origin over TLS, the latter by HTTP/2 if supported; `items` to resources, declared where the proxy knows any."""

    name = ""
    program = ""
    version_command = []

    def __init__(self, origin, leaving, folder, core):
        self.folder = folder
        self.origin, self.leaving = origin, leaving
        self.gateway, self.forward, self.spare, self.secure, self.away, self.from_tls, self.from_h2 = free_ports(7)
        self.items = self.gateway
        self.server = Server(self.name, self.prepare(), self.listening(), core, folder)

    def prepare(self):
        """Writes the configuration and returns the command."""
        raise NotImplementedError

    def listening(self):
        return [self.gateway]

    def is_hit(self, headers):
        """True if a response's fields mark it as a cache hit."""
        return headers.get("X-Cache", "").startswith("HIT") and "Age" in headers

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path


class Rockpool(Proxy):
    name = "rockpool"
    program = os.environ.get("ROCKPOOL_BINARY", ".build/release/rockpool")

    # `standard` has the rules that the other proxies follow. The default limit would make wrk reconnect every 1000 requests.
    CONFIGURATION = """
proxy:
  listen: 127.0.0.1:{forward}
  limits: {{ requests_per_connection: 1000000000 }}
admin: {{ listen: 127.0.0.1:{spare} }}
storage: {{ cache_dir: {folder}/cache, state_dir: {folder}/state, cache_limit: 2 GB, memory_limit: 256 MB }}
upstreams:
  - name: origin
    origin: http://127.0.0.1:{origin}
    gateway: 127.0.0.1:{gateway}
    policy: standard
  - name: secure
    origin: http://localhost:{origin}
    gateway: {{ listen: 127.0.0.1:{secure}, tls: auto }}
    policy: standard
  - name: items
    origin: http://127.0.0.1:{origin_items}
    gateway: 127.0.0.1:{items}
    policy: standard
    resources: [{{ collection: /items }}]
  - name: away
    origin: http://127.0.0.1:{leaving}
    gateway: 127.0.0.1:{away}
  - name: from-tls
    origin: https://localhost:{origin_tls}
    tls: {{ ca_file: {certificate} }}
    gateway: 127.0.0.1:{from_tls}
    policy: standard
  - name: from-h2
    origin: https://localhost:{origin_h2}
    tls: {{ ca_file: {certificate} }}
    gateway: 127.0.0.1:{from_h2}
    policy: standard
"""

    def prepare(self):
        [self.items] = free_ports(1)
        path = self.write(
            "rockpool.yaml",
            self.CONFIGURATION.format(
                forward=self.forward,
                spare=self.spare,
                folder=self.folder,
                origin=self.origin.port,
                gateway=self.gateway,
                secure=self.secure,
                items=self.items,
                origin_items=self.origin.items,
                leaving=self.leaving.port,
                away=self.away,
                certificate=self.origin.certificate,
                origin_tls=self.origin.secure,
                origin_h2=self.origin.h2,
                from_tls=self.from_tls,
                from_h2=self.from_h2,
            ),
        )
        return [os.path.abspath(self.program), "serve", "--config", path]

    def listening(self):
        return [self.gateway, self.forward, self.secure, self.away, self.from_tls, self.from_h2, self.items]

    def is_hit(self, headers):
        return "; hit" in headers.get("Cache-Status", "") and "Age" in headers


class Nginx(Proxy):
    name = "nginx"
    program = "nginx"

    # tcp_nopush, often recommended with sendfile, is off: over loopback it delays segments, and nginx had a third of its throughput at 100
    # KB and twice the CPU with it. A peer is measured in its best configuration.
    CONFIGURATION = """
daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit; {user}
events {{ worker_connections 4096; }}
http {{
    access_log off; sendfile on; keepalive_requests 100000000;
    client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
    open_file_cache max=10000 inactive=10m; open_file_cache_valid 10m;
    proxy_cache_path cache levels=1:2 keys_zone=bench:64m max_size=2g inactive=1h use_temp_path=off;
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; keepalive_requests 100000000; }}
    ssl_certificate leaf.pem; ssl_certificate_key leaf.key; http2_max_requests 100000000;
    server {{
        listen 127.0.0.1:{gateway} backlog=4096;
        listen 127.0.0.1:{secure} ssl http2 backlog=4096;
        location / {{
            proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_cache_revalidate on;
            proxy_cache bench; add_header X-Cache $upstream_cache_status;
        }}
        location /private/ {{
            proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_ignore_headers Cache-Control; proxy_cache_valid 1h; proxy_cache_key $request_uri$http_authorization;
            proxy_cache bench; add_header X-Cache $upstream_cache_status;
        }}
    }}
    upstream secure {{ server 127.0.0.1:{origin_tls}; keepalive 64; keepalive_requests 100000000; }}
    server {{
        listen 127.0.0.1:{from_tls} backlog=4096;
        listen 127.0.0.1:{from_h2} backlog=4096;
        location / {{
            proxy_pass https://secure; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_ssl_verify on; proxy_ssl_trusted_certificate {certificate}; proxy_ssl_name localhost;
            proxy_cache bench; proxy_cache_key tls$request_uri; add_header X-Cache $upstream_cache_status;
        }}
    }}
    upstream away {{ server 127.0.0.1:{leaving}; keepalive 64; }}
    server {{
        listen 127.0.0.1:{away} backlog=4096;
        location / {{
            proxy_pass http://away; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_cache_use_stale error timeout updating; proxy_cache_background_update on;
            proxy_cache bench; add_header X-Cache $upstream_cache_status;
        }}
    }}
}}
"""

    def prepare(self):
        write_certificate(self.folder)
        ports = {"origin": self.origin.port, "gateway": self.gateway, "secure": self.secure, "away": self.away}
        ports |= {"leaving": self.leaving.port, "origin_tls": self.origin.secure, "from_tls": self.from_tls, "from_h2": self.from_h2}
        self.write("nginx.conf", self.CONFIGURATION.format(user=nginx_user(), certificate=self.origin.certificate, **ports))
        return ["nginx", "-p", self.folder, "-e", "stderr", "-c", "nginx.conf"]

    def is_hit(self, headers):
        return headers.get("X-Cache") in ("HIT", "STALE", "UPDATING")  # nginx sends no Age.


class Squid(Proxy):
    name = "squid"
    program = "squid"

    # Otherwise Squid's defaults; the access log is off, as for the other proxies.
    CONFIGURATION = """
http_port 127.0.0.1:{gateway} accel defaultsite=127.0.0.1:{origin} no-vhost name=gateway
http_port 127.0.0.1:{forward} name=forward
acl through_gateway myportname gateway
cache_peer 127.0.0.1 parent {origin} 0 no-query no-digest originserver name=origin
cache_peer_access origin allow through_gateway
cache_peer_access origin deny all
never_direct allow through_gateway
http_access allow all
workers 1
cache_mem 256 MB
maximum_object_size_in_memory 2 MB
memory_cache_shared off
access_log none
cache_store_log none
cache_log {folder}/cache.log
pid_filename {folder}/squid.pid
coredump_dir {folder}
netdb_filename none
pinger_enable off
max_filedescriptors 8192
visible_hostname bench
shutdown_lifetime 0 seconds
"""

    def prepare(self):
        path = self.write(
            "squid.conf", self.CONFIGURATION.format(gateway=self.gateway, forward=self.forward, origin=self.origin.port, folder=self.folder)
        )
        if os.geteuid() == 0:  # Squid refuses to stay root.
            os.chown(self.folder, pwd.getpwnam("proxy").pw_uid, -1)
        return ["squid", "-N", "-f", path]

    def listening(self):
        return [self.gateway, self.forward]


class Varnish(Proxy):
    name = "varnish"
    program = "varnishd"

    CONFIGURATION = """
vcl 4.1;
backend origin {{ .host = "127.0.0.1"; .port = "{origin}"; }}
sub vcl_deliver {{ if (obj.hits > 0) {{ set resp.http.X-Cache = "HIT"; }} else {{ set resp.http.X-Cache = "MISS"; }} }}
"""

    def prepare(self):
        path = self.write("bench.vcl", self.CONFIGURATION.format(origin=self.origin.port))
        # One pool for the one core, with a thread per connection: with fewer, connections wait for each other.
        return [
            "varnishd",
            "-F",
            "-j",
            "none",
            "-n",
            os.path.join(self.folder, "work"),
            "-a",
            f"127.0.0.1:{self.gateway}",
            "-f",
            path,
            "-s",
            "malloc,256m",
            "-p",
            "thread_pools=1",
            "-p",
            "thread_pool_min=100",
            "-p",
            "thread_pool_max=200",
        ]


ALL = {proxy.name: proxy for proxy in (Rockpool, Nginx, Squid, Varnish)}
