// Conflicts of queued writes, detected before the write is sent (docs/outbox.md#delta-pull; issue 5 resolves what is found here).

/// A queued change of an entity that the upstream has changed since.
package struct ConflictAhead: Hashable, Sendable {
    /// The operation's id.
    package var operation: String
    /// The entity's path.
    package var entity: String
    /// The current upstream representation; nil when the upstream deleted the entity.
    package var theirs: JSONValue?
    /// The ETag or version of `theirs`, where known.
    package var version: String?

    package init(operation: String, entity: String, theirs: JSONValue?, version: String?) {
        self.operation = operation
        self.entity = entity
        self.theirs = theirs
        self.version = version
    }

    /// The text for the log; equal as long as the upstream's state is unchanged.
    package var detail: String {
        theirs == nil ? "deleted upstream" : "the upstream has \(version ?? "another representation")"
    }
}
