// Failures caused by Rockpool or the client, and the meaning of failures for reachability.
package import RockpoolCore

extension TransferFailure {
    /// The client that requested the response has left.
    package static let cancelled = TransferFailure(kind: .cancelled, sent: .maybe, detail: "nobody waits for the answer any more")

    /// A request that was not attempted because the upstream is unreachable or switched off. While it is offline, the kind is that of the
    /// last recorded failure.
    static func notTried(_ reason: Reachability.Reason, _ last: String?) -> TransferFailure {
        let kind: Kind =
            switch last {
            case "dns_error" where reason == .offline: .dns
            case _ where reason != .offline: .unavailable
            case "connection_timeout": .connectTimeout
            case "connection_read_timeout": .firstByteTimeout
            default: .refused
            }
        return TransferFailure(kind: kind, sent: .no, detail: "not tried, the upstream is \(reason.rawValue)")
    }

    /// The failure as a reachability event; nil if it shows nothing about reachability.
    var reachabilityKind: Reachability.FailureKind? {
        switch kind {
        case .dns: .dns
        case .refused: .refused
        case .connectTimeout: .connectTimeout
        case .tls: .tls
        case .reset: .reset
        case .firstByteTimeout: .firstByteTimeout
        case .denied, .cancelled, .damaged, .unavailable, .idleTimeout, .protocolError, .tooManyInterim: nil
        }
    }
}
