// TLS as a client of upstreams, where a connection is not libcurl's: always verified (docs/security-model.md#upstream-tls).
import NIOCore
import NIOPosix
import NIOSSL
import RockpoolCore

extension Channel {
    /// Starts TLS as a client of `host`, which the certificate must match. On the event loop only.
    func speakTLS(with host: String, context: NIOSSLContext) throws {
        let name = IPAddress(host) == nil ? host : nil
        try pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: context, serverHostname: name))
    }
}

extension TLSSettings {
    /// Creates a context off the event loop, because it may read files and parse over a hundred authorities.
    func clientContext(on loop: any EventLoop) -> EventLoopFuture<NIOSSLContext> {
        NIOThreadPool.singleton.runIfActive(eventLoop: loop) { try clientContext() }.flatMapErrorThrowing { error in
            throw TransferFailure(kind: .tls, sent: .no, detail: "TLS cannot be set up: \(error)")
        }
    }

    /// Verification is always on; NIOSSL's default minimum of TLS 1.0 is too low (docs/architecture.md#parts).
    private func clientContext() throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = minVersion == "1.3" ? .tlsv13 : .tlsv12
        if let caFile { configuration.additionalTrustRoots = [.file(caFile)] }
        if let clientCert { configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(clientCert).map { .certificate($0) } }
        if let clientKey { configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: clientKey, format: .pem)) }
        return try NIOSSLContext(configuration: configuration)
    }
}
