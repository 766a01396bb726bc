// The settings of the outbox's database (docs/reference/configuration.md#outbox).

/// Where the outbox is kept: in this node's SQLite alone, or in a PostgreSQL that a fleet shares.
package struct OutboxSettings: Hashable, Sendable {
    package var store = OutboxEngine.sqlite
    /// The address of the shared database, `postgresql://…`, without a password.
    package var url: String?
    /// A private file with the address, which may hold a password. Takes precedence over `url`.
    package var urlFile: String?
    /// The name of this node in lists; nil: the host's name.
    package var node: String?
    /// True to refuse a database whose acknowledgement does not survive the loss of its host.
    package var requiresSynchronous = false
    package var whenUnreachable = OutboxAbsence.local

    package init() {}
}

/// The engine that orders the outbox.
package enum OutboxEngine: String, CaseIterable, Hashable, Sendable, Codable {
    case sqlite, postgresql
}

/// What happens to a write while the shared database is away.
package enum OutboxAbsence: String, CaseIterable, Hashable, Sendable {
    /// This node keeps it and hands it over later.
    case local
    /// It is refused with 503.
    case refuse
}
