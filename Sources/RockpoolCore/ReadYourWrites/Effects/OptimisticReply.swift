// The immediate reply to a write that is only queued (docs/outbox.md#optimistic-replies; docs/reference/behaviour.md#optimistic-replies
// "Optimistic replies").
import HTTPTypes

/// The reply of a route with `offline_response: optimistic` in place of the upstream's.
package struct OptimisticReply: Hashable, Sendable {
    /// What the reply carries.
    package enum Content: Hashable, Sendable {
        case nothing
        /// The whole item with its envelope, as subsequent reads show it.
        case item(JSONValue)
        /// What the API answers to every such write.
        case fixed(String)
    }

    package var status: Int
    package var content: Content
    /// The media type of the content; nil where the API's answers have not shown it.
    package var type: String?

    /// The item; nil for a reply without it.
    package var body: JSONValue? { if case .item(let value) = content { value } else { nil } }

    package init(status: Int, content: Content, type: String? = nil) { (self.status, self.content, self.type) = (status, content, type) }

    package init(status: Int, body: JSONValue? = nil) { self.init(status: status, content: body.map { .item($0) } ?? .nothing) }

    /// Returns the reply, or nil where it cannot be computed and the reply is 202: a body that is not JSON, a PATCH of an item without a
    /// cached copy, a patch that does not apply, an action.
    /// - Parameters:
    ///   - base: the item as a read shows it before this write, nil when there is none or a dirty one.
    ///   - baseIsKnown: true if the item is known to exist without it: then a PUT answers 200 and not 201.
    ///   - form: that of the API's own answer to such a write; nil where none was seen.
    package static func decide(
        _ write: FoldedWrite, base: JSONValue?, baseIsKnown: Bool, resource: Resource, form: AnswerForm? = nil
    ) -> OptimisticReply? {
        let isCreate = !write.isItem
        if isCreate, write.id == nil { return nil }
        switch ItemFold.fold(isCreate ? nil : base, with: [write], resource: resource) {
        case .present(let body, last: _, count: _):
            let isNew = isCreate || write.method == .put && base == nil && !baseIsKnown && !resource.isSingleton
            let plain = OptimisticReply(status: isNew ? 201 : 200, body: body)
            // One form was seen: that of a PUT which creates is not that of one which replaces.
            guard let form, isCreate || (form.status == 201) == isNew else { return plain }
            return plain.as(form, item: body)
        case .deleted: return OptimisticReply(status: 204).as(form, item: base)
        case .unchanged, .dirty: return nil
        }
    }

    /// The reply in the form of the API's own; unchanged where the form needs an item that is not known.
    private func `as`(_ form: AnswerForm?, item: JSONValue?) -> OptimisticReply {
        guard let form else { return self }
        switch form.content {
        case .nothing: return OptimisticReply(status: form.status, content: .nothing)
        case .fixed(let text): return OptimisticReply(status: form.status, content: .fixed(text), type: form.type)
        case .item: return item.map { OptimisticReply(status: form.status, content: .item($0), type: form.type) } ?? self
        }
    }
}
