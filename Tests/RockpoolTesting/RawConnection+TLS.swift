// Upgrades a bare TCP connection to TLS.
import NIOCore
import NIOSSL

extension RawConnection {
    /// Begins the handshake as the client. Data sent afterwards waits until the handshake ends.
    ///
    /// - Parameters:
    ///   - host: the name that the certificate must have and that SNI carries; nil for neither.
    ///   - authority: a PEM file with the only trusted certificate authorities.
    /// - Throws: when the file cannot be used.
    package func startTLS(host: String?, trusting authority: String, protocols: [String] = ["http/1.1"]) async throws {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .file(authority)
        configuration.applicationProtocols = protocols
        if host == nil { configuration.certificateVerification = .noHostnameVerification }
        let context = try NIOSSLContext(configuration: configuration)
        let channel = channel
        try await channel.eventLoop.submit {
            let handler = try NIOSSLClientHandler(context: context, serverHostname: host)
            try channel.pipeline.syncOperations.addHandler(handler, position: .first)
        }.get()
    }
}
