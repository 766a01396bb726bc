// Whether a queued write will meet a conflict, seen before it is sent (outbox.md §1.11; issue 5 resolves what is found here).

/// A queued change of an entity that the upstream has changed since.
package struct ConflictAhead: Hashable, Sendable {
    /// The operation's id.
    package var operation: String
    /// The entity's path.
    package var entity: String
    /// The upstream's representation now; nil when the entity is gone there.
    package var theirs: JSONValue?
    /// The ETag or version of `theirs`, where known.
    package var version: String?

    package init(operation: String, entity: String, theirs: JSONValue?, version: String?) {
        self.operation = operation
        self.entity = entity
        self.theirs = theirs
        self.version = version
    }

    /// For the log: the same text as long as the same is seen.
    package var detail: String {
        theirs == nil ? "deleted upstream" : "the upstream has \(version ?? "another representation")"
    }
}

/// A write that has not ended, with what it is based on.
package struct PendingWrite: Hashable, Sendable {
    /// The operation's id.
    package var operation: String
    /// The entity's path.
    package var entity: String
    package var method: String
    /// Whether no byte of it has left: else what the upstream shows may be its own effect.
    package var isUnsent: Bool
    /// Of the base the client could have seen; nil where unknown.
    package var baseETag: String?
    /// By the resource's version pointer; nil where unknown.
    package var baseVersion: String?

    package init(
        operation: String, entity: String, method: String, isUnsent: Bool = true, baseETag: String? = nil, baseVersion: String? = nil
    ) {
        self.operation = operation
        self.isUnsent = isUnsent
        self.entity = entity
        self.method = method
        self.baseETag = baseETag
        self.baseVersion = baseVersion
    }

    /// The conflict it will meet; nil when it will not, or nobody can tell.
    ///
    /// - Parameters:
    ///   - etag: of the entity now, where it was asked for.
    ///   - base: the representation that is cached, compared when neither validator is known.
    package func conflict(with change: DeltaChange, etag: String? = nil, base: JSONValue? = nil) -> ConflictAhead? {
        guard isUnsent, ["PUT", "PATCH", "DELETE"].contains(method) else { return nil }
        switch change {
        case .removal:
            return method == "DELETE" ? nil : ConflictAhead(operation: operation, entity: entity, theirs: nil, version: nil)
        case .upsert(_, let version, let theirs):
            let isElse: Bool
            if let version, let baseVersion {
                isElse = version != baseVersion
            } else if let etag, let baseETag {
                isElse = etag != baseETag
            } else if let base {
                isElse = base != theirs
            } else {
                return nil
            }
            return isElse ? ConflictAhead(operation: operation, entity: entity, theirs: theirs, version: version ?? etag) : nil
        }
    }
}
