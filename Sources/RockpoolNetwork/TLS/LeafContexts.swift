// The TLS contexts of decrypted hosts: each certificate is minted at the first handshake, then cached (docs/architecture.md#parts *TLS
// interception*).
import Crypto
import Glibc
import NIOCore
import NIOPosix
import NIOSSL
package import RockpoolCore
import Synchronization

/// Server-side TLS contexts by host, signed by the authority in `files`, which may be replaced at any time.
package final class LeafContexts: Sendable {
    /// The maximum number of hosts with a cached context.
    static let limit = 1000

    package let files: AuthorityFiles
    private let now: @Sendable () -> Timestamp
    /// One key for the process, in memory only.
    private let key = P256.Signing.PrivateKey()
    private let cache = Mutex(LeafCache<FileIdentity, NIOSSLContext>(limit: limit, freshness: .days(3)))
    private let authority = Mutex<(identity: FileIdentity, authority: CertificateAuthority)?>(nil)

    package init(files: AuthorityFiles, now: @escaping @Sendable () -> Timestamp) {
        self.files = files
        self.now = now
    }

    /// Returns the context for a handshake with `host`, a DNS name or an IP address.
    ///
    /// - Parameter offersHTTP2: False for the proxy itself, which takes CONNECT of HTTP/1.1 only.
    func context(for host: String, offersHTTP2: Bool = true, on loop: any EventLoop) -> EventLoopFuture<NIOSSLContext> {
        let name = Self.name(of: host, offersHTTP2: offersHTTP2)
        // Checked at each handshake, so that a new authority applies from the next one on: one `stat` call, which reads no file.
        if let identity = files.identity, let known = cache.withLock({ $0.context(for: name, by: identity, now: now()) }) {
            return loop.makeSucceededFuture(known)
        }
        return NIOThreadPool.singleton.runIfActive(eventLoop: loop) { [self] in try make(for: host, offersHTTP2: offersHTTP2) }
    }

    /// The name of a context in the cache; no host contains a slash.
    private static func name(of host: String, offersHTTP2: Bool) -> String { offersHTTP2 ? host : host + "/1.1" }

    /// Creates the authority unless there is one, so that it can be displayed and installed before it is needed.
    package func prepare() throws { _ = try currentAuthority() }

    /// Signs and reads files: never on an event loop.
    private func make(for host: String, offersHTTP2: Bool) throws -> NIOSSLContext {
        let (identity, authority) = try currentAuthority()
        let moment = now()
        let leaf = try authority.leaf(for: host, key: key.publicKey, now: moment)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(try NIOSSLCertificate(bytes: leaf, format: .der))],
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(key.derRepresentation), format: .der)))
        // NIOSSL's default minimum is TLS 1.0, with cipher suites that do not authenticate. All suites of TLS 1.3 do.
        configuration.minimumTLSVersion = .tlsv12
        configuration.cipherSuiteValues = Self.suites
        // Do not wait long for a client that does not answer `close_notify`.
        configuration.shutdownTimeout = .seconds(1)
        configuration.applicationProtocols = (offersHTTP2 ? ["h2"] : []) + ["http/1.1"]
        let context = try NIOSSLContext(configuration: configuration)
        cache.withLock { $0.keep(context, for: Self.name(of: host, offersHTTP2: offersHTTP2), by: identity, now: moment) }
        return context
    }

    /// The TLS 1.2 suites of RFC 9325 §4.2 for P-256 keys.
    private static let suites: [NIOTLSCipher] = [
        .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ]

    private func currentAuthority() throws -> (FileIdentity, CertificateAuthority) {
        if let identity = files.identity, let known = authority.withLock({ $0 }), known.identity == identity { return known }
        _ = try files.loadOrMake { try CertificateAuthority.make(host: Self.machine, now: now()) }
        while true {
            guard let identity = files.identity, let loaded = try files.load() else {
                throw AuthorityProblem("\(files.keyPath) is gone again")
            }
            // The file was replaced during the read: the loaded authority may be either.
            guard files.identity == identity else { continue }
            authority.withLock { $0 = (identity, loaded) }
            return (identity, loaded)
        }
    }

    /// This machine's host name.
    package static var machine: String {
        var bytes = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&bytes, bytes.count - 1) == 0 else { return "localhost" }
        return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The most recently used contexts by host. `Authority` distinguishes certificate authorities.
struct LeafCache<Authority: Equatable, Context> {
    private struct Entry {
        let context: Context
        let freshUntil: Timestamp
        var lastUse: UInt64
    }

    /// The maximum number of cached hosts.
    let limit: Int
    /// Half of a new leaf's remaining validity: a cached leaf never comes close to its expiry.
    private let freshness: TimeSpan
    private var authority: Authority?
    private var entries: [String: Entry] = [:]
    private var uses: UInt64 = 0

    init(limit: Int, freshness: TimeSpan) {
        self.limit = limit
        self.freshness = freshness
    }

    var count: Int { entries.count }

    /// Returns the cached context for `host` by this authority; nil when one must be created.
    mutating func context(for host: String, by authority: Authority, now: Timestamp) -> Context? {
        guard self.authority == authority, let entry = entries[host], now < entry.freshUntil else { return nil }
        // After the clock was set back, the leaf may not be valid yet.
        guard entry.freshUntil - now <= freshness else { return nil }
        uses += 1
        entries[host]?.lastUse = uses
        return entry.context
    }

    /// Stores a new context. Entries of another authority are removed, and at the limit the least recently used one.
    mutating func keep(_ context: Context, for host: String, by authority: Authority, now: Timestamp) {
        if self.authority != authority {
            self.authority = authority
            entries = [:]
        }
        if entries.count >= limit, entries[host] == nil, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })?.key {
            entries[oldest] = nil
        }
        uses += 1
        entries[host] = Entry(context: context, freshUntil: now + freshness, lastUse: uses)
    }
}
