// A bare connection that goes on in TLS.
import NIOCore
import NIOSSL

extension RawConnection {
    /// Begins the handshake as the client. What is sent from now on waits for its end.
    ///
    /// - Parameters:
    ///   - host: the name the certificate must bear and SNI says; nil for neither.
    ///   - authority: a PEM file of whom to trust, and nobody else.
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
