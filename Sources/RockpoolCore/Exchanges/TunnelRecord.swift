// One tunnel whose bytes are passed on unread, for those who look at the requests (docs/reference/admin-api.md#requests).

/// A tunnel that has ended, or that could not be opened.
package struct TunnelRecord: Hashable, Sendable {
    /// Why it is not decrypted, by what the configuration says of its host.
    package enum Reason: Hashable, Sendable {
        /// No upstream is declared for the host.
        case undeclared
        /// The upstream of this name is not to be decrypted.
        case declared(String)
    }

    package var host: String
    package var port: Int
    package var reason: Reason
    /// Bytes of the client, and of the host.
    package var sent: Int64 = 0
    package var received: Int64 = 0
    package var took: Duration = .zero
    /// Why it could not be opened, as its client was told; nil for a tunnel that was open.
    package var failure: (status: Int, detail: String)? {
        get { failed.map { ($0.status, $0.detail) } }
        set { failed = newValue.map { Failure(status: $0.status, detail: $0.detail) } }
    }

    private struct Failure: Hashable, Sendable {
        let status: Int
        let detail: String
    }

    private var failed: Failure?

    package init(host: String, port: Int, reason: Reason) { (self.host, self.port, self.reason) = (host, port, reason) }

    /// The verdict in lists: `tunnel`, `refused` or `failed`.
    package var verdict: String {
        guard let failed else { return Self.verdict }
        return failed.status < 500 ? "refused" : "failed"
    }

    package static let verdict = "tunnel"

    package var why: String {
        if let failed { return failed.detail }
        return "\(sent.counted("byte")) sent, \(received) received; not decrypted, so nothing of it was cached or queued"
    }

    /// What makes its requests visible and kept.
    package var next: String? {
        switch reason {
        case .undeclared where failed != nil: nil
        case .undeclared: "rockpool add https://\(host)\(port == 443 ? "" : ":\(port)")"
        case .declared(let name): failed == nil ? "use the gateway of \(name), or set intercept: true for it" : nil
        }
    }
}
