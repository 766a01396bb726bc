// A response that was requested before the read pipeline runs, and takes the place of its own request (docs/architecture.md#relays).
package import RockpoolCore
import Synchronization

/// The answer to a request that was sent by a relay. The pipeline takes it where it would send the same request.
package final class EarlyAnswer: Sendable {
    /// The request that was sent.
    let request: RequestHead
    /// The head as it was received; empty for a failure.
    let head: [UInt8]
    /// The write that the answer is to; nil for a read.
    let write: RelayedWrite?
    private let first: FirstRead?
    private let result: Mutex<Result<OriginReply, TransferFailure>?>

    /// - Parameter result: nil if the pipeline is to send the request: it was not sent, or it was lost and may be repeated.
    package init(to relay: Relay, head: [UInt8] = [], result: Result<OriginReply, TransferFailure>?) {
        (request, self.head, write, first) = (relay.basis.request.head, head, relay.write, relay.first)
        self.result = Mutex(result)
    }

    deinit {
        if case .success(let reply)? = result.withLock({ $0 }) { reply.body.abandon() }
    }

    /// Returns the lead of the fetch, for which other requests wait; once, and nil for another key.
    func takeLead(of key: FetchKey) -> CoalescedFetch? { first?.takeLead(of: key) }

    /// True if there is no answer, or the pipeline has it.
    package var isTaken: Bool { result.withLock { $0 == nil } }

    /// True for a write whose answer, or the lack of it, waits to be taken.
    var holdsWrite: Bool { write != nil && !isTaken }

    /// Returns the answer, once, if the request is the one that was sent; nil if it must be sent.
    ///
    /// Throws the failure of the request; also if a write was sent in place of this one, which must not be sent twice.
    func take(for request: OutboundRequest) throws(TransferFailure) -> OriginReply? {
        guard write != nil || request.head == self.request && request.peer == nil && request.body.isNone else { return nil }
        let taken = result.withLock { result in
            defer { result = nil }
            return result
        }
        guard let taken else { return nil }
        guard write == nil || request.head.method == self.request.method && request.head.url == self.request.url else {
            throw TransferFailure(kind: .reset, sent: .maybe, detail: "another request was sent")
        }
        return try taken.get()
    }
}
