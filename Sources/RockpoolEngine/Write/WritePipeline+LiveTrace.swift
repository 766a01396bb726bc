// The record of a write that is sent while its client waits, from before its bytes are sent (docs/outbox.md#live-writes).
import Logging
import RockpoolCore
import RockpoolStore
import Synchronization

extension WritePipeline {
    /// Records a write that is about to be sent live, so that it is uncertain after a crash.
    /// - Returns: nil if it cannot be recorded. The write is sent nevertheless: it is not acknowledged yet. The log has one line about it.
    func recorded(_ draft: ReceivedWrite, upstream: Upstream) async -> LiveWriteTrace? {
        var operation = draft.operation
        operation.share = share(of: operation.principal, at: upstream)
        // A later attempt carries the condition of this one.
        operation.baseETag = draft.condition
        do {
            let trace = try await data.record(live: operation)
            if leavesNoTrace.exchange(false, ordering: .relaxed) { logger.notice("live writes are recorded again") }
            return trace
        } catch {
            if !leavesNoTrace.exchange(true, ordering: .relaxed) {
                logger.warning(
                    "live writes cannot be recorded; they are sent, and a crash meanwhile leaves no trace of them",
                    metadata: ["error": "\(error)"])
            }
            return nil
        }
    }
}
