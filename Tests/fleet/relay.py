"""A line that can be cut, slow, or drop its connections: a relay of TCP. While it is cut nothing arrives, and nothing is closed."""

import socket
import threading
import time


class Relay:
    """Relays connections of loopback to `port`. While it is cut, connections stay open and nothing arrives.

    `delay`: seconds that each piece of up to 64 KiB takes longer.
    """

    def __init__(self, port):
        self.target, self.delay, self.ends, self.lock = port, 0, set(), threading.Lock()
        self.passes = threading.Event()
        self.passes.set()
        self.server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def cut(self):
        self.passes.clear()

    def mend(self):
        self.passes.set()

    def drop(self):
        """Ends every connection; new ones are relayed."""
        with self.lock:
            ends = list(self.ends)
        for end in ends:
            self.end(end)

    @staticmethod
    def end(connection):
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

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
        with self.lock:
            self.ends |= {client, server}
        for pair in ((client, server), (server, client)):
            threading.Thread(target=self.relay, args=pair, daemon=True).start()

    def relay(self, source, sink):
        try:
            while data := source.recv(65536):
                self.passes.wait()
                time.sleep(self.delay)
                sink.sendall(data)
        except OSError:
            pass
        with self.lock:
            self.ends -= {source, sink}
        # What was sent before the end arrives before it.
        for end in (source, sink):
            self.end(end)
