"""An origin that keeps every received byte, and parses it as strictly as RFC 9112 permits."""

import socket
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from server import free_port

sys.path.append(str(Path(__file__).resolve().parents[1] / "raw-http"))  # after this directory: names are shared
from wire import REQUEST_LINE, Message, read_body, read_head  # noqa: E402


@dataclass
class Piece:
    """One request: its position in the connection's bytes, and its content."""

    stream: "Stream"
    start: int
    end: int
    message: Message

    @property
    def raw(self):
        return bytes(self.stream.data[self.start : self.end])


@dataclass
class Stream:
    """The bytes received on one connection."""

    data: bytearray = field(default_factory=bytearray)
    pieces: list = field(default_factory=list)

    @property
    def rest(self):
        """Bytes that belong to no complete request."""
        return bytes(self.data[self.pieces[-1].end if self.pieces else 0 :])


class Recorder:
    """Answers 200 to each complete request, and keeps its connections."""

    def __init__(self):
        self.port, self.streams, self.pieces, self.lock = free_port(), [], [], threading.Lock()
        self.socket = socket.create_server(("127.0.0.1", self.port), backlog=256)
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def close(self):
        self.socket.close()

    def accept(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = Stream()
            self.streams.append(stream)
            threading.Thread(target=self.serve, args=(peer, stream), daemon=True).start()

    def serve(self, peer, stream):
        try:
            while more := peer.recv(1 << 18):
                stream.data += more
                while piece := next_piece(stream):
                    with self.lock:
                        stream.pieces.append(piece)
                        self.pieces.append(piece)
                    body = b"" if piece.message.parts[0] == b"HEAD" else b"ok"
                    peer.sendall(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\n" + body)
        except OSError:
            pass
        finally:
            peer.close()


def next_piece(stream):
    start = stream.pieces[-1].end if stream.pieces else 0
    end = stream.data.find(b"\r\n\r\n", start)
    if end < 0:
        return None
    message, after = Message(), bytes(stream.data[end + 4 :])
    read_head(bytes(stream.data[start:end]), message, REQUEST_LINE)
    rest = read_body(message, after)
    return None if rest is None else Piece(stream, start, len(stream.data) - len(rest), message)
