// A response that was requested before the pipeline runs, and takes the place of its own request (docs/architecture.md#relays).
import RockpoolCore
import Synchronization

/// The answer to a request that was sent by a relay. The pipeline takes it where it would send the same request.
package final class EarlyAnswer: Sendable {
    /// The request that was sent.
    let request: RequestHead
    /// The head as it was received; empty for a failure.
    let head: [UInt8]
    /// What the relay was about: a `RelayedRead`, a `RelayedWrite`, or nothing but the request.
    let subject: (any Sendable)?
    /// What became of the request if it was sent, lost, and may be repeated: the first sending may have had its effect.
    let lost: TransferFailure?
    let sentAt: Moment
    /// True for a write, which must not be sent twice.
    private let isWrite: Bool
    private let result: Mutex<Result<OriginReply, TransferFailure>?>

    /// - Parameter result: nil if the pipeline is to send the request: it was not sent, or it was lost and may be repeated.
    init(
        to request: RequestHead, head: [UInt8], subject: (any Sendable)?, isWrite: Bool, result: Result<OriginReply, TransferFailure>?,
        lost: TransferFailure?, sentAt: Moment
    ) {
        (self.request, self.head, self.subject, self.isWrite) = (request, head, subject, isWrite)
        (self.lost, self.sentAt) = (lost, sentAt)
        self.result = Mutex(result)
    }

    deinit {
        if case .success(let reply)? = result.withLock({ $0 }) { reply.body.abandon() }
    }

    /// True if there is no answer, or the pipeline has it.
    package var isTaken: Bool { result.withLock { $0 == nil } }

    /// When the request was sent, if its answer waits to be taken; nil otherwise. What is invalidated since then is newer than
    /// the answer.
    var answeredSince: Moment? { isTaken ? nil : sentAt }

    /// True for a write whose answer, or the lack of it, waits to be taken.
    var holdsWrite: Bool { isWrite && !isTaken }

    /// Returns the answer, once, if the request is the one that was sent; nil if it must be sent.
    ///
    /// Throws the failure of the request; also if a write was sent in place of this one, which must not be sent twice.
    func take(for request: OutboundRequest) throws(TransferFailure) -> OriginReply? {
        guard isWrite || request.head == self.request && request.peer == nil && request.body.isNone else { return nil }
        let taken = result.withLock { result in
            defer { result = nil }
            return result
        }
        guard let taken else { return nil }
        guard !isWrite || request.head.method == self.request.method && request.head.url == self.request.url else {
            throw TransferFailure(kind: .reset, sent: .maybe, detail: "another request was sent")
        }
        return try taken.get()
    }
}
