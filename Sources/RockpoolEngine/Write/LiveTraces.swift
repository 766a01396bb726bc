// The records of writes that are sent while their clients wait, from before their bytes are sent (docs/outbox.md#live-writes).
import Logging
import RockpoolCore
import RockpoolStore
import Synchronization

/// Records live writes, so that those under way at a crash are uncertain afterwards.
final class LiveTraces: Sendable {
    private let data: DataStore
    private let logger: Logger
    /// True while live writes cannot be recorded.
    private let isFailing = Atomic(false)
    private let isCutOff = Atomic(false)

    init(data: DataStore, logger: Logger) {
        self.data = data
        self.logger = logger
    }

    /// Records a write that is about to be sent live.
    /// - Parameter share: the share of the outbox that its operation would count against.
    /// - Returns: nil if it cannot be recorded. The write is sent nevertheless: it is not acknowledged yet. The log has one line about it.
    func record(_ draft: ReceivedWrite, share: OutboxShare) async -> LiveWriteTrace? {
        await withCheckedContinuation { continuation in record(draft, share: share) { continuation.resume(returning: $0) } }
    }

    /// Records a write, as above, for a caller without a task.
    /// - Parameter answer: called once; on any thread.
    func record(_ draft: ReceivedWrite, share: OutboxShare, answer: @escaping @Sendable (LiveWriteTrace?) -> Void) {
        var operation = draft.operation
        operation.share = share
        // A later attempt carries the condition of this one.
        operation.baseETag = draft.condition
        data.record(live: operation) { [self] result in
            switch result {
            case .success(let trace):
                if isFailing.exchange(false, ordering: .relaxed) { logger.notice("live writes are recorded again") }
                answer(trace)
            case .failure(let error):
                if !isFailing.exchange(true, ordering: .relaxed) {
                    logger.warning(
                        "live writes cannot be recorded; they are sent, and a crash meanwhile leaves no trace of them",
                        metadata: ["error": "\(error)"])
                }
                answer(nil)
            }
        }
    }

    /// Notes that the server closes the connections of what is still under way: from now on their clients have not left, they were left.
    func cutOff() { isCutOff.store(true, ordering: .relaxed) }

    /// Ends the record of a write whose client has left, so that `trace` is nil. Of a write that was cut off it stays, and makes the write
    /// uncertain at the next start.
    func abandon(_ trace: inout LiveWriteTrace?) {
        if !isCutOff.load(ordering: .relaxed) { end(trace) }
        trace = nil
    }

    /// Ends a record, because the client gets an answer. No effect if the write was queued.
    func end(_ trace: LiveWriteTrace?) {
        if let trace { data.end(trace) }
    }
}
