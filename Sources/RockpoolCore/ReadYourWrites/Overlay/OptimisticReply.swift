// The immediate reply to a write that is only queued (docs/outbox.md#optimistic-replies; docs/reference/behaviour.md#optimistic-replies
// "Optimistic replies").
import HTTPTypes

/// The reply of a route with `offline_response: optimistic` in place of the upstream's.
package struct OptimisticReply: Hashable, Sendable {
    /// 200, 201 or 204.
    package var status: Int
    /// The whole item with its envelope, as subsequent reads show it; nil for 204.
    package var body: JSONValue?

    package init(status: Int, body: JSONValue? = nil) {
        self.status = status
        self.body = body
    }

    /// Returns the reply, or nil where it cannot be computed and the reply is 202: a body that is not JSON, a PATCH of an item without a
    /// cached copy, a patch that does not apply, an action. `base` is the item as a read shows it before this write, nil when there is none
    /// or a dirty one; `baseIsKnown` is true if the item is known to exist without it: then a PUT answers 200 and not 201.
    package static func decide(_ write: FoldedWrite, base: JSONValue?, baseIsKnown: Bool, resource: Resource) -> OptimisticReply? {
        let isCreate = !write.isItem
        if isCreate, write.id == nil { return nil }
        switch ItemFold.fold(isCreate ? nil : base, with: [write], resource: resource) {
        case .present(let body, last: _, count: _):
            let isNew = isCreate || write.method == .put && base == nil && !baseIsKnown
            return OptimisticReply(status: isNew ? 201 : 200, body: body)
        case .deleted: return OptimisticReply(status: 204)
        case .unchanged, .dirty: return nil
        }
    }
}
