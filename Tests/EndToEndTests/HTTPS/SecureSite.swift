// An HTTPS origin for tests: Python's server with a certificate made by openssl, so that the tested code does not verify itself.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

/// Certificates of an authority that is known only to the tests.
struct TestAuthority: Sendable {
    let scratch: Scratch
    /// Path of the PEM file, for `tls.ca_file`.
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

    /// Creates a certificate for `names` and its key. Returns their common path without the suffixes `.pem` and `.key`.
    /// - Parameter commonName: the common name, which is not an identity.
    func certificate(
        _ names: String = "DNS:localhost,IP:127.0.0.1", days: Int = 30, commonName: String = "test"
    ) async throws -> String {
        let name = "site-\(UUID().uuidString.prefix(8))"
        try scratch.write(names.isEmpty ? "keyUsage=digitalSignature\n" : "subjectAltName=\(names)\n", to: "\(name).ext")
        try await openssl(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "\(name).key", "-out", "\(name).csr",
            "-subj", "/CN=\(commonName)")
        try await openssl(
            "x509", "-req", "-in", "\(name).csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "\(name).pem", "-days",
            "\(days)", "-extfile", "\(name).ext")
        return scratch.path + "/" + name
    }
}

/// Serves a directory over HTTPS until it is stopped.
final class SecureSite: Sendable {
    let port: Int
    let root: Scratch
    private let child: ChildProcess

    private static let script = """
        import http.server, os, ssl, sys
        port, certificate, root, clients, latest = sys.argv[1:6]
        os.chdir(root)
        class Handler(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *words): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate + ".pem", certificate + ".key")
        context.maximum_version = ssl.TLSVersion.TLSv1_2 if latest == "1.2" else ssl.TLSVersion.TLSv1_3
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.serve_forever()
        """

    /// - Parameters:
    ///   - certificate: its path without the suffix; the key has the same path.
    ///   - clients: the authority of the required client certificates, PEM; empty when none are required.
    ///   - latest: the latest supported version of TLS, 1.2 or 1.3.
    init(certificate: String, port wanted: Int? = nil, clientsOf clients: String = "", latest: String = "1.3") async throws {
        let port = wanted ?? FreePort.next()
        self.port = port
        root = try Scratch()
        try root.write(#"{"tide": "low"}"#, to: "tide.json")
        child = try await ChildProcess("/usr/bin/env", ["python3", "-c", Self.script, "\(port)", certificate, root.path, clients, latest])
        try await eventually("an HTTPS site") {
            let itself = ["--cert", certificate + ".pem", "--key", certificate + ".key"]
            return try await Command.run("/usr/bin/curl", ["-sk", "https://127.0.0.1:\(port)/tide.json"] + itself).status == 0
        }
    }

    var url: String { "https://localhost:\(port)" }

    func stop() async throws {
        child.signal(SIGKILL)
        _ = try await child.ending()
    }

    deinit { child.signal(SIGKILL) }
}

/// A site and a server that decrypts requests to it.
struct SecureWorld: Sendable {
    let authority: TestAuthority
    let site: SecureSite
    let server: ServerProcess

    /// Runs `body` with both, and checks that the server stops cleanly.
    static func with(
        names: String = "DNS:localhost,IP:127.0.0.1", days: Int = 30, commonName: String = "test", trusts: Bool = true,
        _ body: (SecureWorld) async throws -> Void
    ) async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate(names, days: days, commonName: commonName))
        let tls: JSONValue = trusts ? ["ca_file": .string(authority.file)] : [:]
        let server = try await ServerProcess.start(
            ServerSettings(upstream: site.port, ["origin": .string(site.url), "intercept": true, "tls": tls]))
        try await body(SecureWorld(authority: authority, site: site, server: server))
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    /// Runs a program under `rockpool run`, with its own home directory.
    func run(_ program: [String], home: Scratch, environment: [String: String] = [:]) async throws -> Command {
        try await Command.rockpool(
            ["run", "--config", server.configurationFile, "--"] + program,
            environment: ["HOME": home.path].merging(environment) { $1 }, directory: home.path, within: .seconds(120))
    }
}
