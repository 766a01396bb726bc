"""Two network namespaces connected by a veth pair, removed when their processes end."""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time

from result import Skip

NEAR, FAR = "10.201.0.1", "10.201.0.2"
libc = ctypes.CDLL(None, use_errno=True)
NEW_NETWORK, DEATH_SIGNAL = 0x40000000, 1


class Link:
    """Inside the context this process and its children are at NEAR, in their own namespace; `far()` creates sockets at FAR."""

    def __enter__(self):
        if os.geteuid() != 0:
            raise Skip("root, for network namespaces")
        if missing := [name for name in ("ip", "iptables", "unshare", "nsenter") if not shutil.which(name)]:
            raise Skip(" and ".join(missing))
        self.home = open("/proc/self/ns/net")
        if libc.unshare(NEW_NETWORK) != 0:
            raise Skip("leave to make network namespaces")
        self.holder = subprocess.Popen(
            ["unshare", "--net", "sleep", "infinity"], preexec_fn=lambda: libc.prctl(DEATH_SIGNAL, signal.SIGKILL)
        )
        own, path = os.readlink("/proc/self/ns/net"), f"/proc/{self.holder.pid}/ns/net"
        while os.readlink(path) == own:
            time.sleep(0.01)
        self.other = open(path)
        self.near(
            "ip link set lo up",
            f"ip link add rp0 type veth peer name rp1 netns {self.holder.pid}",
            f"ip address add {NEAR}/24 dev rp0",
            "ip link set rp0 up",
        )
        self.away("ip link set lo up", f"ip address add {FAR}/24 dev rp1", "ip link set rp1 up")
        return self

    def __exit__(self, *_):
        self.holder.kill()
        self.holder.wait()
        self.other.close()
        libc.setns(self.home.fileno(), NEW_NETWORK)
        self.home.close()

    @staticmethod
    def near(*commands):
        for command in commands:
            done = subprocess.run(command.split(), capture_output=True, text=True)
            if done.returncode:
                raise Skip(f"`{command}`: {done.stderr.strip()}")
        return done.stdout

    def away(self, *commands):
        return self.near(*(f"nsenter --net=/proc/{self.holder.pid}/ns/net {command}" for command in commands))

    @contextlib.contextmanager
    def far(self):
        here = open("/proc/self/ns/net")
        libc.setns(self.other.fileno(), NEW_NETWORK)
        try:
            yield
        finally:
            libc.setns(here.fileno(), NEW_NETWORK)
            here.close()

    def listener(self, port):
        with self.far():
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((FAR, port))
            s.listen(1024)
            return s

    def client(self, port):
        with self.far():
            s = socket.create_connection((NEAR, port), timeout=5)
            s.setblocking(False)
            return s

    def silence(self):
        """The far end disappears without a packet: nothing is received from it or reaches it."""
        self.away("iptables -I INPUT -i rp1 -j DROP", "iptables -I OUTPUT -o rp1 -j DROP")
