// A parent proxy for tests: HTTP or SOCKS 5, in Python, so that it shares no code with the tested client (RFC 9112 §3.2, RFC 1928).
import Foundation
import RockpoolTesting

/// Connects every target to the requested port of this machine, whatever the host: no other resolver knows `pool.test`.
final class ParentProcess: Sendable {
    let port: Int
    private let log: Scratch
    private let child: ChildProcess

    private static let script = """
        import base64, socket, ssl, sys, threading
        kind, port, log, certificate = sys.argv[1:5]
        context = None
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate + ".pem", certificate + ".key")
        def note(line):
            with open(log, "a") as file: file.write(line + "\\n")
        def pump(source, sink):
            try:
                while data := source.recv(65536): sink.sendall(data)
            except OSError: pass
            for end in (source, sink):
                try: end.shutdown(socket.SHUT_RDWR)
                except OSError: pass
        def read(client, count):
            data = b""
            while len(data) < count:
                piece = client.recv(count - len(data))
                if not piece: raise OSError("left")
                data += piece
            return data
        password = sys.argv[5]
        def socks(client):
            methods = read(client, read(client, 2)[1])
            method = (b"\\x02" if b"\\x02" in methods else b"\\xff") if password else methods[:1]
            client.sendall(b"\\x05" + method)
            if method == b"\\xff": raise OSError("no password offered")
            if method == b"\\x02":
                user = read(client, read(client, 2)[1]).decode()
                given = user + ":" + read(client, read(client, 1)[0]).decode()
                client.sendall(b"\\x01" + (b"\\x00" if given == password else b"\\x01"))
                if given != password: raise OSError("wrong password")
            form = read(client, 4)[3]
            host = read(client, read(client, 1)[0]).decode() if form == 3 else socket.inet_ntoa(read(client, 4))
            port = int.from_bytes(read(client, 2), "big")
            note(f"SOCKS {host}:{port}")
            far = socket.create_connection(("127.0.0.1", port))
            client.sendall(b"\\x05\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00")
            return far
        def http(client):
            head = b""
            while not head.endswith(b"\\r\\n\\r\\n"): head += read(client, 1)
            method, target, version = head.split(b"\\r\\n")[0].decode().split(" ")
            proof = b"Basic " + base64.b64encode(password.encode())
            if password and proof not in head:
                client.sendall(b"HTTP/1.1 407 Denied\\r\\nProxy-Authenticate: Basic realm=x\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n")
                raise OSError("denied")
            note(f"{method} {target}")
            if method == "CONNECT":
                far = socket.create_connection(("127.0.0.1", int(target.rsplit(":", 1)[1])))
                client.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
                return far
            authority, path = target.removeprefix("http://").split("/", 1)
            far = socket.create_connection(("127.0.0.1", int(authority.rsplit(":", 1)[1])))
            far.sendall(head.replace(target.encode(), b"/" + path.encode(), 1).replace(b"\\r\\n", b"\\r\\nConnection: close\\r\\n", 1))
            return far
        def serve(client):
            try:
                if context: client = context.wrap_socket(client, server_side=True)
                far = socks(client) if kind == "socks" else http(client)
            except OSError as error:
                note(f"failed {error}")
                return client.close()
            threading.Thread(target=pump, args=(client, far), daemon=True).start()
            pump(far, client)
        listener = socket.create_server(("127.0.0.1", int(port)))
        while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
        """

    /// - Parameters:
    ///   - kind: `http` or `socks`.
    ///   - certificate: its path without the suffix, for TLS to the proxy itself.
    ///   - password: `user:password` that clients must send.
    ///   - port: where it listens; nil for a free one.
    init(_ kind: String, certificate: String = "", password: String = "", port: Int? = nil) async throws {
        let port = port ?? FreePort.next()
        self.port = port
        log = try Scratch()
        child = try await ChildProcess(
            "/usr/bin/env", ["python3", "-c", Self.script, kind, "\(port)", log.path + "/log", certificate, password])
        try await eventually("a parent proxy") {
            guard let connection = try? await RawConnection.open("127.0.0.1:\(port)") else { return false }
            await connection.close()
            return true
        }
        // Remove the log line of the test connection above.
        try await eventually("its first line") { (try? Files.text(of: self.log.path + "/log"))?.contains("failed") == true }
        try log.write("", to: "log")
    }

    /// The received requests, one per line.
    var lines: [String] { ((try? Files.text(of: log.path + "/log")) ?? "").split(separator: "\n").map(String.init) }

    deinit { child.signal(SIGKILL) }
}
