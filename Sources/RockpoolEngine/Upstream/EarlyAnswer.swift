// A response that was requested before the read pipeline runs, and takes the place of its own request (docs/architecture.md#relays).
package import RockpoolCore
import Synchronization

/// The answer to a request that was sent by a relay. The pipeline takes it where it would send the same request.
package final class EarlyAnswer: Sendable {
    /// The request that was sent.
    let request: RequestHead
    /// The head as it was received; empty for a failure.
    let head: [UInt8]
    /// The 1xx responses before it, which the connection sends to the client.
    package let interim: [ResponseHead]
    private let result: Mutex<Result<OriginReply, TransferFailure>?>

    package init(to request: RequestHead, head: [UInt8], interim: [ResponseHead], result: Result<OriginReply, TransferFailure>) {
        (self.request, self.head) = (request, head)
        self.interim = interim.map { ResponseHead(status: $0.status, fields: HopByHop.stripped(answer: $0.fields)) }
        self.result = Mutex(result)
    }

    deinit {
        if case .success(let reply)? = result.withLock({ $0 }) { reply.body.abandon() }
    }

    var isTaken: Bool { result.withLock { $0 == nil } }

    /// Returns the answer, once, if the request is the one that was sent.
    func take(for request: OutboundRequest) -> Result<OriginReply, TransferFailure>? {
        guard request.head == self.request, case .none = request.body, request.peer == nil else { return nil }
        return result.withLock { result in
            defer { result = nil }
            return result
        }
    }
}
