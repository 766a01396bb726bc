// Maps the errors of NIO connections to the failure kinds of other exchanges (RFC 9209 §2.3).
import Glibc
import NIOCore
import NIOPosix
import NIOSSL
import RockpoolCore

extension TransferFailure {
    /// Creates a failure in which nothing of the request was sent, because requests are sent after the handshake.
    init(connecting error: any Error) {
        switch error {
        case let failure as TransferFailure: self = failure
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            // A handshake that the network cut off is not a certificate error.
            let text = "\(error)".lowercased()
            let isCut = ["eof", "connection_reset", "uncleanshutdown"].contains { text.contains($0) }
            self.init(kind: isCut ? .reset : .tls, sent: .no, detail: "\(error)")
        case ChannelError.connectTimeout: self.init(kind: .connectTimeout, sent: .no, detail: "no answer to the connection")
        case let error as NIOConnectionError:
            self.init(connecting: error.connectionErrors.first?.error ?? ChannelError.connectPending)
        case let error as IOError where error.errnoCode == ECONNREFUSED:
            self.init(kind: .refused, sent: .no, detail: "the connection was refused")
        default: self.init(kind: .reset, sent: .no, detail: "\(error)")
        }
    }
}
