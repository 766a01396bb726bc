// Decrypted tunnels to the scripted upstream `https://api.test`.
import RockpoolCore
import RockpoolTesting

@testable import RockpoolNetwork

extension OriginAddress {
    static let secret = OriginAddress(scheme: .https, host: "api.test")
}

extension Pool {
    /// Returns a pool with the decrypted upstream `https://api.test`.
    static func intercepting(
        rule: @escaping ScriptedOrigin.Rule, configure: (inout Configuration) -> Void = { _ in }
    ) async throws -> Pool {
        try await Pool(rule: rule, upstream: Upstream(name: "notes", origin: .secret, intercept: true), configure: configure)
    }

    static func intercepting(_ configure: (inout Configuration) -> Void = { _ in }) async throws -> Pool {
        try await intercepting(rule: { _ in .ok() }, configure: configure)
    }

    var authority: AuthorityFiles { AuthorityFiles(stateDirectory: scripted.store.directory + "/state") }

    /// Returns the path of the authority's certificate; creates the authority when there is none.
    func trusted() throws -> String {
        _ = try authority.loadOrMake { try .make(host: "test", now: scripted.clock.now) }
        return authority.certificatePath
    }

    /// Runs curl through the proxy with the proxy's authority trusted; the certificates are valid at the real time.
    func curl(
        _ url: String, _ options: [String] = [], method: String = "GET", body: String? = nil, trusts: Bool = true
    ) async throws -> Curl {
        let trust = try trusts ? ["--cacert", trusted()] : []
        return try await Curl.send(
            method, url, body: body, options: ["--proxy", "http://" + proxy, "--suppress-connect-headers"] + trust + options)
    }

    /// Opens a connection inside a tunnel and begins the TLS handshake.
    func tunnel(
        to host: String = "api.test:443", sni: String? = "api.test", protocols: [String] = ["http/1.1"]
    ) async throws -> RawConnection {
        let connection = try await RawConnection.open(proxy)
        try await connection.send("CONNECT \(host) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        _ = try await connection.read(through: "\r\n\r\n")
        try await connection.startTLS(host: sni, trusting: trusted(), protocols: protocols)
        return connection
    }
}
