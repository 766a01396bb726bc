// Conditions of a write that the state its client reads already contradicts (docs/outbox.md#optimistic-replies; RFC 9110 §13.1).
package import HTTPTypes

/// An entity as its client reads it, as far as a condition of the client's next write is concerned.
package struct LocalCondition: Hashable, Sendable {
    package enum Presence: Hashable, Sendable { case present, absent, unknown }

    /// Whether the client reads the entity, or that there is none.
    package var presence: Presence
    /// The upstream's tags of the copies that the client may read; empty if none is known to be current.
    package var tags: [EntityTag]
    /// The last queued write that the client reads; nil without one. The entity then has a local tag only.
    package var lastPending: Int64?

    package init(presence: Presence, tags: [EntityTag] = [], lastPending: Int64? = nil) {
        self.presence = presence
        self.tags = tags
        self.lastPending = lastPending
    }

    /// Returns the reason in words why a write with these fields is refused; nil where only the upstream can decide.
    package func contradiction(of fields: HTTPFields) -> String? {
        if let list = fields[.ifNoneMatch], FieldList.trimmed(list[...]) == "*", presence == .present {
            return "If-None-Match: * forbids to replace what exists"
        }
        guard let list = fields[.ifMatch] else { return nil }
        if presence == .absent { return "If-Match demands what does not exist" }
        guard FieldList.trimmed(list[...]) != "*" else { return nil }
        return isCurrent(EntityTag.list(in: list)) == false ? "If-Match names a state that has been replaced" : nil
    }

    /// Returns true if one of the tags names the state that the client reads; nil if that is not known.
    private func isCurrent(_ named: [EntityTag]) -> Bool? {
        let local = named.compactMap { LocalETag($0) }
        if let lastPending { return local.contains { $0.sequence >= lastPending } }
        guard local.isEmpty, !tags.isEmpty else { return nil }
        return named.contains { tag in tags.contains(where: tag.names) }
    }
}
