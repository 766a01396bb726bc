// The tables of `data.sqlite`; SQLite itself checks states and their transitions (docs/outbox.md#schema, docs/outbox.md#states).
import GRDB
import RockpoolCore

/// The data store's schema, one migration per version.
enum DataSchema {
    /// "RPdt".
    static let identity = DatabaseIdentity(
        applicationID: 0x5250_6474, migrations: [version1, version2, version3, version4, version5, version6, version7, version8],
        synchronous: .full)

    /// Creates triggers that reject transitions outside `OperationMachine.legal` and reasons outside `OperationReason`. They are recreated
    /// when either has changed with the version.
    static func guardTransitions(in db: Database) throws {
        try guardOperations(in: db, named: "op_transition", "UPDATE OF state", when: "new.state <> old.state AND NOT (\(legal))")
        let reasons = OperationReason.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        try guardOperations(in: db, named: "op_reason", "UPDATE OF reason", when: "new.reason NOT IN (\(reasons))")
        try guardOperations(in: db, named: "op_first_reason", "INSERT", when: "new.reason NOT IN (\(reasons))")
    }

    /// Creates the indexes by which a new write finds what it waits for among all open writes: those to the whole of its collection, the
    /// first ones of its lane by principal and state, and equal ones (docs/outbox.md#repeats). They came without a version, because an older Rockpool can use and keep them.
    static func indexOpenWrites(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE INDEX IF NOT EXISTS op_standing ON op (lane, upstream, principal, state, place)
                    WHERE \(OperationState.isOpen);
                CREATE INDEX IF NOT EXISTS op_whole_collection ON op (upstream, entity_type, principal, seq)
                    WHERE entity_id IS NULL AND \(OperationState.isOpen);
                CREATE INDEX IF NOT EXISTS op_equal ON op (fingerprint) WHERE method = 'POST' AND \(OperationState.isOpen)
                """)
    }

    private static var legal: String {
        OperationState.allCases.compactMap { from -> String? in
            let to = OperationMachine.legal[from, default: []].map { "'\($0.rawValue)'" }.sorted()
            return to.isEmpty ? nil : "old.state = '\(from.rawValue)' AND new.state IN (\(to.joined(separator: ", ")))"
        }.joined(separator: " OR ")
    }

    private static func guardOperations(in db: Database, named name: String, _ change: String, when condition: String) throws {
        let condition = ConstantLists.unrolled(condition)
        let trigger = "CREATE TRIGGER \(name) BEFORE \(change) ON op WHEN \(condition) BEGIN SELECT RAISE(ABORT, 'illegal \(name)'); END"
        let present = try String.fetchOne(db, sql: "SELECT sql FROM sqlite_master WHERE name = ?", arguments: [name])
        guard present != trigger else { return }
        try db.execute(sql: "DROP TRIGGER IF EXISTS \(name); \(trigger)")
    }
}
