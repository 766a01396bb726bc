// A queued write as a pull sees it.

/// A write that has not ended, with the validators of its base.
package struct PendingWrite: Hashable, Sendable {
    /// The operation's id.
    package var operation: String
    /// The entity's path.
    package var entity: String
    package var method: String
    /// True if no byte of it was sent; otherwise the upstream's state may already include its effect.
    package var isUnsent: Bool
    /// The ETag of the base that the client could have seen; nil where unknown.
    package var baseETag: String?
    /// The base's version by the resource's version pointer; nil where unknown.
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

    /// Returns the conflict that the write will meet; nil when there is none or it cannot be determined.
    ///
    /// - Parameters:
    ///   - etag: the entity's current ETag, where it was requested.
    ///   - base: the cached representation, compared when neither validator is known.
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
                isElse = !EntityTag.list(in: baseETag).contains { EntityTag(etag)?.names($0) ?? false }
            } else if let base {
                isElse = base != theirs
            } else {
                return nil
            }
            return isElse ? ConflictAhead(operation: operation, entity: entity, theirs: theirs, version: version ?? etag) : nil
        }
    }
}
