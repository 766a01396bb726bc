// What a client is told at once about a write that is only queued (outbox.md §1.4; contract §6 "Optimistic replies").
import HTTPTypes

/// The reply a route with `offline_response: optimistic` gives in the upstream's place.
package struct OptimisticReply: Hashable, Sendable {
    /// 200, 201 or 204.
    package var status: Int
    /// The item as a read would show it from now on, whole, with its envelope; nil for 204.
    package var body: JSONValue?

    package init(status: Int, body: JSONValue? = nil) {
        self.status = status
        self.body = body
    }

    /// The reply, or nil where it cannot be told and 202 is: a body that is no JSON, a PATCH of an item no copy of which is at hand, a
    /// patch that does not fit, an action. `base` is the item as a read shows it before this write, nil when it shows none or a dirty one;
    /// `baseIsKnown` whether the item is known to exist without that: then a PUT answers 200 and not 201.
    package static func decide(_ write: FoldedWrite, base: JSONValue?, baseIsKnown: Bool, resource: Resource) -> OptimisticReply? {
        let isCreate = !write.isItem
        if isCreate, write.id == nil { return nil }
        switch ItemFold.fold(isCreate ? nil : base, [write], resource: resource) {
        case .present(let body, last: _, count: _):
            let isNew = isCreate || write.method == .put && base == nil && !baseIsKnown
            return OptimisticReply(status: isNew ? 201 : 200, body: body)
        case .deleted: return OptimisticReply(status: 204)
        case .unchanged, .dirty: return nil
        }
    }
}
