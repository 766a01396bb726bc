// The knowledge that no operation is of the kinds that few outboxes have, so that a write that is queued asks no database for them
// (docs/outbox.md#lanes).
import GRDB
import RockpoolCore
import Synchronization

/// Remembers that no operation is dead or in conflict, and that no open one is about a whole collection.
final class RareOperations: Sendable {
    private let changes = Atomic(0)
    /// The value of `changes` before the read that found none.
    private let absentAt = Atomic(-1)
    /// True if the transaction under way has made one.
    private let isMade = Atomic(false)
    private let nextLook = Mutex(ContinuousClock.now)

    /// SQL for a row of `op` that is such an operation.
    private static func condition(_ row: String) -> String {
        """
        (\(row)state IN ('dead', 'conflicted')
            OR \(row)entity_type IS NOT NULL AND \(row)entity_id IS NULL AND \(row)state NOT IN (\(OperationRow.endedStates)))
        """
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
                    CREATE TEMP TRIGGER rare_\(event.prefix(6).lowercased()) AFTER \(event) ON main.op WHEN \(Self.condition("new."))
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
                    SELECT EXISTS (SELECT 1 FROM op WHERE state IN ('dead', 'conflicted')) OR EXISTS (SELECT 1 FROM op
                        WHERE entity_type IS NOT NULL AND entity_id IS NULL AND state NOT IN (\(OperationRow.endedStates)))
                    """))
        if rare == false { absentAt.store(mark, ordering: .releasing) }
    }
}

extension DataStore {
    /// True if no operation is dead, in conflict, or open and about a whole collection.
    package func knowsNothingRare() async throws -> Bool {
        if rare.areAbsent { return true }
        guard rare.mayLook else { return false }
        try await reading { try self.rare.look(in: $0) }
        return rare.areAbsent
    }
}
