"""The compared caches, each on disk, with a limit that a restart may lower."""

import json
import os
import pwd
import re
import select
import signal
import subprocess
import sys
import time
import urllib.request

import load

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers"))
from origin import nginx_user
from servers import BenchmarkError, free_ports, process_table

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Cache:
    """One proxy with a cache on disk that can be started and stopped repeatedly."""

    name = ""
    can_be_killed = False
    farewell = 60
    # The new limit as a share of the stored bytes: about a seventh of them is evicted.
    lowered = 0.95

    # Seconds after a start within which an eviction may begin.
    patience = 20

    def __init__(self, folder, origin, control):
        self.folder, self.origin, self.control, self.process = folder, origin, control, None
        self.gateway, self.spare = free_ports(2)

    def start(self, limit):
        """Starts the proxy; returns the seconds from exec until it accepts, and the start time."""
        self.prepare(limit)
        began = time.monotonic()
        with open(os.path.join(self.folder, "output.log"), "ab") as log:
            self.process = subprocess.Popen(
                self.command(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.output(log), stderr=log, start_new_session=True
            )
        self.wait_until_ready()
        return time.monotonic() - began, began

    def output(self, log):
        return log

    def wait_until_ready(self):
        load.connect(self.gateway, 120).close()

    def stop(self, how=signal.SIGTERM):
        if self.process is None:
            return
        table = process_table()
        family = self.family(table)
        self.process.send_signal(how)
        try:
            self.process.wait(self.farewell)
        except subprocess.TimeoutExpired:
            print(f"  {self.name} had to be killed after {self.farewell} s", flush=True)
        finally:
            after = process_table()
            for pid in family & after.keys():
                if after[pid].started == table[pid].started:
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def family(self, table):
        found = {self.process.pid}
        while more := {pid for pid, process in table.items() if process.parent in found} - found:
            found |= more
        return found & table.keys()

    def cpu(self):
        table = process_table()
        return sum(table[pid].cpu for pid in self.family(table))

    def memory(self):
        """Bytes; memory shared by processes counts once (Pss)."""
        total = 0
        for pid in self.family(process_table()):
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += int(re.search(r"(?m)^Pss:\s+(\d+)", file.read())[1]) * 1024
        return total

    def disk(self):
        """Bytes that the cache directory uses on the disk."""
        return int(subprocess.run(["du", "-s", "-B1", self.cache], capture_output=True, text=True, check=True).stdout.split()[0])

    @property
    def cache(self):
        return os.path.join(self.folder, "cache")

    def counted(self):
        """The bytes by the cache's own accounting, to which its limit applies."""
        return self.disk()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path


class Rockpool(Cache):
    name = "Rockpool"
    binary = os.path.abspath(os.environ.get("ROCKPOOL_BINARY", os.path.join(ROOT, ".build/release/rockpool")))
    can_be_killed = True

    CONFIGURATION = """
proxy:
  listen: 127.0.0.1:0
  limits: {{ requests_per_connection: 1000000000 }}
admin: {{ listen: "127.0.0.1:0" }}
storage: {{ cache_dir: {folder}/cache, state_dir: {folder}/state, cache_limit: {limit} KB, min_free: 1 MB }}
upstreams:
  - name: origin
    origin: http://127.0.0.1:{origin}
    gateway: 127.0.0.1:{gateway}
    policy: standard
    routes: [{{ match: "/**", category: important }}]
"""

    def prepare(self, limit):
        self.configuration = self.write(
            "rockpool.yaml",
            self.CONFIGURATION.format(folder=self.folder, limit=int(limit) // 1000, origin=self.origin, gateway=self.gateway),
        )

    def command(self):
        return [self.binary, "serve", "--config", self.configuration, "--log-level", "error"]

    def output(self, log):
        return subprocess.PIPE

    def wait_until_ready(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 300)
        line = self.process.stdout.readline().decode() if ready else ""
        found = re.match(r"rockpool ready .*admin=(\S+)", line)
        if not found:
            raise BenchmarkError(f"Rockpool does not serve within 300 s: {line}")
        self.admin = found[1]

    def stats(self):
        with urllib.request.urlopen(f"http://{self.admin}/v1/stats", timeout=60) as answer:
            return json.load(answer)["cache"]

    def entries(self):
        return self.stats()["entries"]

    def gone(self):
        """Entries evicted since the start."""
        return self.stats()["evictions"]

    def clean(self, *options):
        """Returns the report of `rockpool storage-cleanup`."""
        done = subprocess.run(
            [self.binary, "storage-cleanup", *options, "--format", "json", "--config", self.configuration],
            capture_output=True,
            text=True,
            timeout=600,
        )
        if done.returncode:
            raise BenchmarkError(f"storage-cleanup {' '.join(options)}: {done.stderr.strip()}")
        return json.loads(done.stdout)


class Nginx(Cache):
    name = "nginx"
    lowered = 0.86  # nginx has no low-water mark: this share stays.
    patience = 80  # nginx's cache loader runs a minute after the start.

    # At its default pace (100 files, then a pause) nginx's loader needs minutes to index a million files before it can evict; it gets a
    # faster one. The cache manager, which evicts, has nginx's default settings.
    CONFIGURATION = """
daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit; {user}
events {{ worker_connections 4096; }}
http {{
    access_log off; sendfile on; keepalive_requests 100000000;
    client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
    proxy_cache_path cache levels=1:2 keys_zone=million:256m max_size={limit}k inactive=7d use_temp_path=off
        loader_files=10000 loader_threshold=1s loader_sleep=1ms;
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; keepalive_requests 100000000; }}
    server {{
        listen 127.0.0.1:{gateway} backlog=4096;
        location / {{
            proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_cache million; add_header X-Cache $upstream_cache_status;
        }}
    }}
}}
"""

    def prepare(self, limit):
        self.write(
            "nginx.conf", self.CONFIGURATION.format(user=nginx_user(), limit=int(limit) // 1024, origin=self.origin, gateway=self.gateway)
        )
        self.most = None

    def command(self):
        return ["nginx", "-p", self.folder, "-e", "stderr", "-c", "nginx.conf"]

    def entries(self):
        return sum(len(files) for _, _, files in os.walk(self.cache))

    def gone(self):
        """nginx keeps no count: counts the files in one of every 256 folders and multiplies."""
        now = 0
        for middle in "0123456789abcdef":
            try:
                now += len(os.listdir(os.path.join(self.cache, "0", "0" + middle)))
            except FileNotFoundError:
                continue
        self.most = max(self.most or 0, now)
        return (self.most - now) * 256


class Control:
    """nginx with a few files: its latency is affected only by the machine."""

    CONFIGURATION = """
daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit; {user}
events {{ worker_connections 64; }}
http {{
    access_log off; sendfile on; keepalive_requests 100000000;
    client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
    open_file_cache max=1000 inactive=1h; open_file_cache_valid 1h;
    server {{ listen 127.0.0.1:{gateway}; root {folder}; add_header X-Cache HIT; }}
}}
"""

    def __init__(self, folder, count):
        [self.gateway] = free_ports(1)
        os.makedirs(os.path.join(folder, "e"))
        for n in range(1, count + 1):
            with open(os.path.join(folder, "e", str(n)), "wb") as file:
                file.write(load.body(n))
        with open(os.path.join(folder, "nginx.conf"), "w") as file:
            file.write(self.CONFIGURATION.format(user=nginx_user(), gateway=self.gateway, folder=folder))
        self.process = subprocess.Popen(
            ["nginx", "-p", folder, "-e", "stderr", "-c", "nginx.conf"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        load.connect(self.gateway).close()

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


class Squid(Cache):
    name = "Squid"

    CONFIGURATION = """
http_port 127.0.0.1:{gateway} accel defaultsite=127.0.0.1:{origin} no-vhost name=gateway
http_port 127.0.0.1:{spare} name=manager
acl through_gateway myportname gateway
cache_peer 127.0.0.1 parent {origin} 0 no-query no-digest originserver name=origin
cache_peer_access origin allow through_gateway
cache_peer_access origin deny all
never_direct allow through_gateway
http_access allow all
workers 1
cache_mem 64 MB
cache_dir {kind} {folder}/cache {limit} 64 256
maximum_object_size_in_memory 512 KB
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

    def prepare(self, limit):
        self.configuration = self.write(
            "squid.conf",
            self.CONFIGURATION.format(
                kind="ufs", folder=self.folder, gateway=self.gateway, spare=self.spare, origin=self.origin, limit=int(limit) // 2**20
            ),
        )
        if not os.path.isdir(self.cache):
            if os.geteuid() == 0:  # Squid refuses to stay root.
                os.chown(self.folder, pwd.getpwnam("proxy").pw_uid, -1)
            subprocess.run(["squid", "-N", "-z", "-f", self.configuration], check=True, timeout=120, capture_output=True)
        log = os.path.join(self.folder, "cache.log")
        self.rebuilt = open(log, errors="replace").read().count("Finished rebuilding storage") if os.path.exists(log) else 0

    def command(self):
        return ["squid", "-N", "-f", self.configuration]

    def wait_until_ready(self):
        """Squid accepts immediately, but has its entries only after rebuilding the index."""
        super().wait_until_ready()
        log, until = os.path.join(self.folder, "cache.log"), time.monotonic() + 300
        while time.monotonic() < until:
            with open(log, errors="replace") as file:
                if file.read().count("Finished rebuilding storage") > self.rebuilt:
                    self.rebuilt += 1
                    return
            time.sleep(0.01)
        raise BenchmarkError("Squid does not finish rebuilding its index within 300 s")

    def counted(self):
        with open(os.path.join(self.folder, "cache.log"), errors="replace") as file:
            return int(float(re.findall(r"store_swap_size = ([\d.]+) KB", file.read())[-1]) * 1024)

    def page(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.spare}/squid-internal-mgr/{name}", timeout=60) as answer:
            return answer.read().decode("latin-1")

    def entries(self):
        return int(re.search(r"(\d+) on-disk objects", self.page("info"))[1])

    def gone(self):
        now = self.entries()
        self.most = max(getattr(self, "most", 0), now)
        return self.most - now


ALL = {cache.name.lower(): cache for cache in (Rockpool, Nginx, Squid)}
