// Signed requests that came to a gateway which names another host than they were signed for (docs/guide/programs.md#s3-aws-boto3-rclone).
import HTTPTypes
package import RockpoolCore
import Synchronization

/// The time of the last such request to each upstream, for `rockpool doctor`.
package final class SignedArrivals: Sendable {
    private let times = Mutex<[String: Timestamp]>([:])

    /// The time of the last one; nil if none has come since the start.
    package func last(to upstream: String) -> Timestamp? { times.withLock { $0[upstream] } }

    /// Notes the request of an exchange at a gateway whose rewritten `Host` its signature covers.
    func note(_ exchange: Exchange, to upstream: Upstream?, at moment: Timestamp) {
        guard let upstream, exchange.gateway != nil, exchange.signer == nil, !upstream.preserveHost,
            let signed = SignedRequest(exchange.request), signed.coversHost
        else { return }
        times.withLock { $0[upstream.name] = moment }
    }
}
