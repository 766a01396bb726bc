// The dependencies of an operation besides its lane (docs/outbox.md#dependencies `op_dep`, §1.9).

/// The reason why one operation needs another. The raw values are stored in the `op_dep` table.
package enum DependencyKind: String, CaseIterable, Sendable, Codable {
    /// Its request contains a local id that the other operation's answer will map.
    case id
    /// Its condition names the state that the other operation produces (docs/outbox.md#local-etags).
    case etag
    /// Its path is below the entity that the other operation creates.
    case parent
    /// The client declared it in `Rockpool-Depends-On`.
    case explicit
    /// Both belong to one `Rockpool-Group`.
    case group
    /// One writes to a collection, the other to a member of it.
    case collection

    /// True if it keeps an order, and the later operation needs nothing of the earlier one.
    package var isOfOrder: Bool { self == .group || self == .collection }
}

/// A dependency edge: some operation needs the one numbered `needs`.
package struct Dependency: Hashable, Sendable {
    /// Sequence of the operation that must be delivered first.
    package var needs: Int64
    package var kind: DependencyKind

    package init(needs: Int64, kind: DependencyKind) {
        self.needs = needs
        self.kind = kind
    }
}
