// An HTTPS origin of a test's own: Python's server with a certificate that openssl made, so that nothing of ours vouches for itself.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

/// Certificates of an authority that only the tests know.
struct TestAuthority: Sendable {
    let scratch: Scratch
    /// PEM; what `tls.ca_file` names.
    var file: String { scratch.path + "/ca.pem" }

    init() async throws {
        scratch = try Scratch()
        try await openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-days", "30", "-subj", "/CN=test authority")
    }

    private func openssl(_ arguments: String...) async throws {
        let run = try await Command.run("/usr/bin/openssl", arguments, directory: scratch.path)
        guard run.status == 0 else { throw NeverCame(description: "openssl: \(run.errors)") }
    }

    /// A certificate for `names` and its key: their paths without the suffixes `.pem` and `.key`.
    func certificate(_ names: String = "DNS:localhost,IP:127.0.0.1", days: Int = 30) async throws -> String {
        let name = "site-\(UUID().uuidString.prefix(8))"
        try scratch.write("subjectAltName=\(names)\n", to: "\(name).ext")
        try await openssl(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "\(name).key", "-out", "\(name).csr",
            "-subj",
            "/CN=test")
        try await openssl(
            "x509", "-req", "-in", "\(name).csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "\(name).pem", "-days",
            "\(days)", "-extfile", "\(name).ext")
        return scratch.path + "/" + name
    }
}

/// Serves a directory over HTTPS until it is taken away.
final class SecureSite: Sendable {
    let port: Int
    let root: Scratch
    private let child: ChildProcess

    private static let script = """
        import http.server, os, ssl, sys
        port, certificate, root = sys.argv[1:4]
        os.chdir(root)
        class Handler(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *words): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate + ".pem", certificate + ".key")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.serve_forever()
        """

    /// - Parameter certificate: its path without the suffix; the key lies beside it.
    init(certificate: String, port wanted: Int? = nil) async throws {
        let port = wanted ?? FreePort.next()
        self.port = port
        root = try Scratch()
        try root.write(#"{"tide": "low"}"#, to: "tide.json")
        child = try ChildProcess("/usr/bin/env", ["python3", "-c", Self.script, "\(port)", certificate, root.path])
        try await eventually("an HTTPS site") {
            try await Command.run("/usr/bin/curl", ["-sk", "https://127.0.0.1:\(port)/tide.json"]).status == 0
        }
    }

    var url: String { "https://localhost:\(port)" }

    func stop() async throws {
        child.signal(SIGKILL)
        _ = try await child.ending()
    }

    deinit { child.signal(SIGKILL) }
}

/// A site and a server that decrypts what goes to it.
struct SecureWorld: Sendable {
    let authority: TestAuthority
    let site: SecureSite
    let server: ServerProcess

    /// Runs `body` with all of it, and checks that the server ends well.
    static func with(
        names: String = "DNS:localhost,IP:127.0.0.1", days: Int = 30, trusts: Bool = true, _ body: (SecureWorld) async throws -> Void
    ) async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate(names, days: days))
        let tls: JSONValue = trusts ? ["ca_file": .string(authority.file)] : [:]
        let server = try await ServerProcess.start(
            ServerSettings(upstream: site.port, ["origin": .string(site.url), "intercept": true, "tls": tls]))
        try await body(SecureWorld(authority: authority, site: site, server: server))
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    /// A program set up by `rockpool run`, with a home of its own.
    func run(_ program: [String], home: Scratch, environment: [String: String] = [:]) async throws -> Command {
        try await Command.rockpool(
            ["run", "--config", server.configurationFile, "--"] + program,
            environment: ["HOME": home.path].merging(environment) { $1 }, directory: home.path, within: .seconds(120))
    }
}
