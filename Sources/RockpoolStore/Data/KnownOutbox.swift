// What is known of the outbox without a read: that nothing waits in it, or nothing of the kinds that few outboxes have, and which keys of
// clients it has seen (docs/outbox.md#live-writes, docs/outbox.md#lanes, docs/outbox.md#keys).
import GRDB
import RockpoolCore
import Synchronization

/// Remembers that the outbox was found without open operations: while it is known, a live write asks no database for earlier ones.
final class EmptyOutbox: Sendable {
    private let taken = Atomic(0)
    /// The value of `taken` before the read that found none.
    private let emptyAt = Atomic(-1)

    /// True if no operation was taken since the outbox was found empty.
    var isKnown: Bool { emptyAt.load(ordering: .acquiring) == taken.load(ordering: .acquiring) }

    /// The mark of a read that begins now.
    var mark: Int { taken.load(ordering: .acquiring) }

    /// Records that a read with this mark has found no open operation.
    func note(at mark: Int) { emptyAt.store(mark, ordering: .releasing) }

    /// Records that an operation may have been taken. Call it after the commit, and before the write is acknowledged.
    func noteTaken() { taken.add(1, ordering: .acquiringAndReleasing) }
}

/// Remembers that no operation is dead or in conflict, and that no open one is about a whole collection.
final class RareOperations: Sendable {
    private let changes = Atomic(0)
    /// The value of `changes` before the read that found none.
    private let absentAt = Atomic(-1)
    /// True if the transaction under way has made one.
    private let isMade = Atomic(false)
    private let nextLook = Mutex(ContinuousClock.now)

    private static func isStuck(_ row: String) -> String { "\(row).state IN ('dead', 'conflicted')" }

    private static func isWide(_ row: String) -> String {
        "\(row).entity_type IS NOT NULL AND \(row).entity_id IS NULL AND \(OperationState.isOpen(row))"
    }

    /// Watches the writing connection. Call it once, when the schema is complete.
    func begin(on db: Database) throws {
        db.add(
            function: DatabaseFunction("note_rare", argumentCount: 0) { [self] _ in
                isMade.store(true, ordering: .relaxed)
                changes.add(1, ordering: .acquiringAndReleasing)
                return nil
            })
        for event in ["INSERT", "UPDATE OF state, entity_type, entity_id"] {
            try db.execute(
                sql: """
                    CREATE TEMP TRIGGER rare_\(event.prefix(6).lowercased()) AFTER \(event) ON main.op
                    WHEN \(Self.isStuck("new")) OR \(Self.isWide("new"))
                    BEGIN SELECT note_rare(); END
                    """)
        }
    }

    /// Notes the end of a transaction, before its callers learn of it.
    func committed() {
        if isMade.exchange(false, ordering: .relaxed) { changes.add(1, ordering: .acquiringAndReleasing) }
    }

    /// True if there are none.
    var areAbsent: Bool { absentAt.load(ordering: .acquiring) == changes.load(ordering: .acquiring) }

    /// True if it is worth a read to find out whether there are any; at most once a second.
    var mayLook: Bool {
        nextLook.withLock { next in
            guard .now >= next else { return false }
            next = .now + .seconds(1)
            return true
        }
    }

    /// Looks for some.
    func look(in db: Database) throws {
        let mark = changes.load(ordering: .acquiring)
        let rare = try Bool.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM op WHERE \(Self.isStuck("op"))) OR EXISTS (SELECT 1 FROM op WHERE \(Self.isWide("op")))
                    """))
        if rare == false { absentAt.store(mark, ordering: .releasing) }
    }
}

/// Remembers the hashes of all client keys that the outbox may hold: a write with another key is no repeat of what is kept.
final class KeptClientKeys: Sendable {
    private static let keyCount = 65_536

    private let most: Int
    /// Nil beyond that number.
    private let hashes = Mutex<Set<Int>?>([])

    /// - Parameter most: the maximum number, of about a megabyte; beyond it any key counts as held.
    init(most: Int = keyCount) { self.most = most }

    /// Reads the keys and watches the writing connection. Call it once, when the schema is complete.
    func begin(on db: Database) throws {
        let keys = try String.fetchAll(db, sql: "SELECT client_key FROM op WHERE client_key IS NOT NULL LIMIT \(most + 1)")
        for key in keys { note(key) }
        db.add(
            function: DatabaseFunction("note_client_key", argumentCount: 1) { [self] values in
                if let key = String.fromDatabaseValue(values[0]) { note(key) }
                return nil
            })
        try db.execute(
            sql: """
                CREATE TEMP TRIGGER client_key_kept AFTER INSERT ON main.op WHEN new.client_key IS NOT NULL
                BEGIN SELECT note_client_key(new.client_key); END
                """)
    }

    /// True if one of these values of the column may be there.
    func mayHold(_ values: [String]) -> Bool {
        hashes.withLock { hashes in hashes.map { hashes in values.contains { hashes.contains($0.hashValue) } } ?? true }
    }

    private func note(_ key: String) {
        hashes.withLock { hashes in
            hashes?.insert(key.hashValue)
            if hashes?.count ?? 0 > most { hashes = nil }
        }
    }
}

extension DataStore {
    /// True if it is known that the outbox has no open operation.
    package var isKnownEmpty: Bool { empty.isKnown }
}
