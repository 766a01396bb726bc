// What an operation waits for besides its lane (outbox.md §1.2 `op_dep`, §1.9).

/// Why one operation needs another. The same words are in the `op_dep` table.
package enum DependencyKind: String, CaseIterable, Sendable, Codable {
    /// It names the local id that the other will have mapped.
    case id
    /// Its condition is on the state that the other leaves (§1.4).
    case etag
    /// Its path lies below what the other creates.
    case parent
    /// The client said so: `Rockpool-Depends-On`.
    case explicit
    /// Both are of one `Rockpool-Group`.
    case group
}

/// An edge: some operation needs the one numbered `needs`.
package struct Dependency: Hashable, Sendable {
    /// Sequence of the operation that must be delivered first.
    package var needs: Int64
    package var kind: DependencyKind

    package init(needs: Int64, kind: DependencyKind) {
        self.needs = needs
        self.kind = kind
    }
}
