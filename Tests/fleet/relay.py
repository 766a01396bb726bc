"""A line that can be cut: a relay of TCP that stops passing bytes on, both ways or one, without closing anything."""

import socket
import threading


class Relay:
    """Relays connections of loopback to `port`. While it is cut, connections stay open and nothing arrives."""

    def __init__(self, port):
        self.target = port
        self.passes = threading.Event()
        self.passes.set()
        self.server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def cut(self):
        self.passes.clear()

    def mend(self):
        self.passes.set()

    def accept(self):
        while True:
            client, _ = self.server.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        self.passes.wait()
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            return client.close()
        for pair in ((client, server), (server, client)):
            threading.Thread(target=self.relay, args=pair, daemon=True).start()

    def relay(self, source, sink):
        try:
            while data := source.recv(65536):
                self.passes.wait()
                sink.sendall(data)
        except OSError:
            pass
        # What was sent before the end arrives before it.
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
