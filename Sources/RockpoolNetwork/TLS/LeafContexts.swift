// The TLS context of each decrypted host: its certificate minted when first asked for, then kept (design §6 *TLS interception*).
import Crypto
import Glibc
import NIOCore
import NIOPosix
import NIOSSL
package import RockpoolCore
import Synchronization

/// Server-side TLS contexts by host, signed by the authority in `files`, which may be replaced at any time.
package final class LeafContexts: Sendable {
    /// Hosts whose context is kept.
    static let limit = 1000

    package let files: AuthorityFiles
    private let now: @Sendable () -> Timestamp
    /// One for the process, in memory only.
    private let key = P256.Signing.PrivateKey()
    private let cache = Mutex(LeafCache<FileIdentity, NIOSSLContext>(limit: limit, freshness: .days(3)))
    private let authority = Mutex<(identity: FileIdentity, authority: CertificateAuthority)?>(nil)

    package init(files: AuthorityFiles, now: @escaping @Sendable () -> Timestamp) {
        self.files = files
        self.now = now
    }

    /// The context for a handshake with `host`, a DNS name or an IP address.
    func context(for host: String, on loop: any EventLoop) -> EventLoopFuture<NIOSSLContext> {
        // Looked at each time, so that a new authority counts from the next handshake on: one call that reads no disk.
        if let identity = files.identity, let known = cache.withLock({ $0.context(for: host, by: identity, now: now()) }) {
            return loop.makeSucceededFuture(known)
        }
        return NIOThreadPool.singleton.runIfActive(eventLoop: loop) { [self] in try make(for: host) }
    }

    /// Makes the authority unless there is one, so that it can be shown and installed before it is needed.
    package func prepare() throws { _ = try currentAuthority() }

    /// Signs and reads files: never on an event loop.
    private func make(for host: String) throws -> NIOSSLContext {
        let (identity, authority) = try currentAuthority()
        let moment = now()
        let leaf = try authority.leaf(for: host, key: key.publicKey, now: moment)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(try NIOSSLCertificate(bytes: leaf, format: .der))],
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(key.derRepresentation), format: .der)))
        // NIOSSL's own floor is TLS 1.0, with suites whose encryption does not authenticate. Those of TLS 1.3 all do.
        configuration.minimumTLSVersion = .tlsv12
        configuration.cipherSuiteValues = Self.suites
        // A client that does not answer our farewell is not waited for.
        configuration.shutdownTimeout = .seconds(1)
        configuration.applicationProtocols = ["h2", "http/1.1"]
        let context = try NIOSSLContext(configuration: configuration)
        cache.withLock { $0.keep(context, for: host, by: identity, now: moment) }
        return context
    }

    /// Of TLS 1.2: for our keys, which are of P-256, those of RFC 9325 §4.2.
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
            // Replaced while it was read: what was read may be either.
            guard files.identity == identity else { continue }
            authority.withLock { $0 = (identity, loaded) }
            return (identity, loaded)
        }
    }

    /// This machine's name.
    package static var machine: String {
        var bytes = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&bytes, bytes.count - 1) == 0 else { return "localhost" }
        return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
