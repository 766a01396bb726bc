// A node that its fleet refuses begins anew with the open writes that it has (docs/fleet.md#coming-back).
import GRDB
package import Logging
package import RockpoolCore

/// What a node offers to its fleet at its next start, under the same ids.
package struct RejoinOffer: Hashable, Sendable, Codable {
    /// Writes that this node alone has: they wait, as before.
    package var held: Int
    /// Open writes that the fleet had when this node saw it last. Those that it still has stay as they are there; the others come back.
    package var seen: Int
}

extension DataStore {
    /// Makes the replica of a stopped server forget what it has seen of its fleet, and take another id: its next start joins as a node with an
    /// outbox of its own, whatever refused it before. A write that others may have sent meanwhile is uncertain if it comes back.
    /// - Throws: `.locked` while a server runs; `.unavailable` if the outbox is no replica.
    package static func rejoin(
        _ directory: String, settings: StorageSettings, clock: @escaping @Sendable () -> Timestamp, logger: Logger
    ) async throws -> RejoinOffer {
        try await with(directory, outbox: nil, settings: settings, clock: clock, logger: logger) { store in
            guard store.isOfFleet else { throw DataStoreError.unavailable("the outbox in \(directory) is in no fleet") }
            let now = clock()
            return try await store.queue.commit(scope: .own) { db in try FleetReplica.beginAnew(in: db, now: now) }
        }
    }
}

extension FleetReplica {
    /// Takes a new id, and no position: the next transaction of the fleet brings all of its rows, and hands over what it lacks.
    static func beginAnew(in db: Database, now: Timestamp) throws -> RejoinOffer {
        func count(_ condition: String) throws -> Int {
            try Int.fetchOne(db, sql: "SELECT count(*) FROM op WHERE \(condition) AND \(OperationState.isOpen)") ?? 0
        }
        let offer = RejoinOffer(
            held: try count("seq >= \(HeldOperations.first)"), seen: try count("seq < \(HeldOperations.first)"))
        // The fleet knew these: another node may have sent them since this one saw it last.
        let waiting = try Int64.fetchAll(db, sql: "SELECT seq FROM op WHERE seq < \(HeldOperations.first) AND state = 'pending'")
        for sequence in waiting {
            try db.execute(
                sql: """
                    INSERT INTO attempt (seq, rev, n, started, ended, error, evidence)
                        SELECT seq, key_rev, (SELECT coalesce(max(n) + 1, 0) FROM attempt WHERE attempt.seq = op.seq), accepted_at,
                            max(accepted_at, ?2), 'crashed', 'maybe' FROM op WHERE seq = ?1
                    """, arguments: [sequence, now.milliseconds])
            try db.execute(
                sql: "UPDATE op SET first_sent_at = coalesce(first_sent_at, accepted_at), sent_tick = coalesce(sent_tick, 0) WHERE seq = ?",
                arguments: [sequence])
            try DataStore.transition(in: db, sequence: sequence, from: .pending, to: .uncertain, reason: .crashed, now: now)
        }
        try db.execute(sql: "DELETE FROM fleet_claim; DROP TABLE IF EXISTS fleet_left")
        try db.execute(
            sql: "UPDATE fleet_state SET node = ?, position = 0, timeline = 0, word = NULL", arguments: [newNode()])
        return offer
    }
}
