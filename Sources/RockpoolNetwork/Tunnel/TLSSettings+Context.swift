// TLS as a client of upstreams, where a connection is not libcurl's: always verified (docs/security-model.md#upstream-tls).
import NIOCore
import NIOPosix
import NIOSSL
import RockpoolCore
import SwiftASN1
import X509

extension Channel {
    /// Starts TLS as a client of `host`, which the certificate must name in its subjectAltName (RFC 9525 §6.3). NIOSSL would also take the
    /// common name where there is no such extension, and for a name the address that it leads to. On the event loop only.
    func speakTLS(with host: String, context: NIOSSLContext) throws {
        let name = IPAddress(host) == nil ? host : nil
        try pipeline.syncOperations.addHandler(
            NIOSSLClientHandler._makeSSLClientHandler(context: context, serverHostname: name) { certificate, channel in
                channel.eventLoop.makeCompletedFuture {
                    let names = try Certificate(derEncoded: certificate.toDERBytes()).extensions.subjectAlternativeNames
                    guard names?.contains(where: { name == nil || $0.names(host) }) == true else {
                        throw TransferFailure(
                            kind: .tls, sent: .no,
                            detail: "the certificate does not name \(host) in its subjectAltName; its common name does not count")
                    }
                }
            })
    }
}

extension GeneralName {
    /// True for a DNS name that is `host`, which is in lower case, or has `*` in place of its first label (RFC 9525 §6.3).
    fileprivate func names(_ host: String) -> Bool {
        guard case .dnsName(let name) = self else { return false }
        let pattern = name.lowercased()
        guard pattern.hasPrefix("*."), let dot = host.firstIndex(of: ".") else { return pattern == host }
        return pattern.dropFirst() == host[dot...]
    }
}

extension TLSSettings {
    /// Creates a context off the event loop, because it may read files and parse over a hundred authorities.
    /// - Parameter protocols: those that are offered to the server (RFC 7301).
    func clientContext(offering protocols: [String] = [], on loop: any EventLoop) -> EventLoopFuture<NIOSSLContext> {
        NIOThreadPool.singleton.runIfActive(eventLoop: loop) { try clientContext(offering: protocols) }.flatMapErrorThrowing { error in
            throw TransferFailure(kind: .tls, sent: .no, detail: "TLS cannot be set up: \(error)")
        }
    }

    /// Verification is always on; NIOSSL's default minimum of TLS 1.0 is too low (docs/architecture.md#parts).
    private func clientContext(offering protocols: [String]) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.applicationProtocols = protocols
        configuration.minimumTLSVersion = minVersion == "1.3" ? .tlsv13 : .tlsv12
        if let caFile { configuration.additionalTrustRoots = [.file(caFile)] }
        if let clientCert { configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(clientCert).map { .certificate($0) } }
        if let clientKey { configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: clientKey, format: .pem)) }
        return try NIOSSLContext(configuration: configuration)
    }
}
