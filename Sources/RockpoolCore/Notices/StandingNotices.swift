// A limit that stays exceeded is told once (docs/guide/operating.md#alarms).

/// The limits that were exceeded at the last measurement.
package struct StandingNotices: Sendable {
    private struct Key: Hashable {
        var kind: NoticeKind?
        var upstream: String?
    }

    private var standing: Set<Key> = []

    package init() {}

    /// Returns the notices of limits that are exceeded now and were not before.
    package mutating func news(_ notices: [Notice]) -> [Notice] {
        let keys = notices.map { Key(kind: $0.kind, upstream: $0.upstream) }
        defer { standing = Set(keys) }
        return zip(notices, keys).filter { !standing.contains($0.1) }.map(\.0)
    }
}
