// A write before it is sent or queued.
import HTTPTypes
import RockpoolCore
import RockpoolStore

/// A write that is either sent now or queued: the operation it would become, and the request as it would be sent live.
struct ReceivedWrite: Sendable {
    var operation: QueuedWriteDraft
    var head: RequestHead
    var body: OutboundRequest.Body
    /// True if the request refers to the result of an open operation, so it cannot be sent before that operation.
    var mustWait: Bool
    /// The `If-Match` that Rockpool adds to the live request; nil for none.
    var condition: String?
    /// The record of its live attempt, from before it is sent; nil where there is none.
    var trace: LiveWriteTrace?
}

extension QueuedWriteDraft {
    /// The whole representation that a PUT puts at its target; nil for any other write, and where it is no JSON.
    var replacement: JSONValue? {
        guard request.method == .put, case .inline(let bytes) = body, MediaType.isJSON(request.fields) else { return nil }
        return try? JSONValue.parse(bytes)
    }
}
