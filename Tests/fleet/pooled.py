"""A fleet behind PgBouncer. Returns what was measured, or raises `Failed`."""

import os
import shutil
import signal
import subprocess
import time

from clients import Clients
from fleet import Fleet, until
from holding import Failed
from postgres import Cluster, free_port
from relay import Relay

# Debian's place is not in the path of every user.
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Pooler:
    """PgBouncer in transaction mode, in front of one server at a time."""

    def __init__(self, server):
        self.port, self.file = free_port(), server.scratch / "pgbouncer.ini"
        self.aim(server)
        user = ["setpriv", f"--reuid={server.user}", f"--regid={server.user}", "--clear-groups"] if server.user else []
        with open(server.scratch / "pgbouncer.log", "w") as log:
            self.process = subprocess.Popen([*user, PROGRAM, self.file], stdout=log, stderr=log)

    def aim(self, server):
        """What is asked for from now on comes from this server."""
        self.file.write_text(f"""[databases]
rockpool = host=127.0.0.1 port={server.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
server_login_retry = 1
""")
        self.file.chmod(0o644)

    def follow(self, server):
        """Aims at another server, as the script of a failover does."""
        self.aim(server)
        self.process.send_signal(signal.SIGHUP)

    def stop(self):
        self.process.kill()
        self.process.wait()


def pooled(given):
    """S27: PgBouncer in transaction mode: writes are shared; when a standby that lacks some is behind the same address, nobody goes on."""
    if PROGRAM is None:
        return "nothing: PgBouncer is not installed (apt-get install pgbouncer)"
    database = Cluster()
    line = Relay(database.port)
    standby = Cluster(standby_of=database, line=line)
    pooler = Pooler(database)
    try:
        fleet = Fleet(given.binary, pooler, absence="refuse")
        clients = Clients(fleet, "abab")
        time.sleep(5)
        clients.stop()
        fleet.drained(30)
        said = fleet.judge()
        time.sleep(2)
        line.cut()
        for n in range(8):
            if fleet.write("ab"[n % 2], f"lost-{n}", f"c9-{n}") != 202:
                raise Failed("no acknowledgement without a standby")
        time.sleep(1)
        database.kill()
        standby.promote()
        pooler.follow(standby)
        took = until(lambda: all("lacks changes" in server.log for server in fleet.nodes.values()), 30, "both say what is lost")
        if 202 in (answers := [fleet.write(node, "one", f"c8-{node}") for node in "ab"]):
            raise Failed(f"the older copy was written to: {answers}")
    finally:
        pooler.stop()
    return f"{said}; after the failover refused and said within {took:.1f} s"
