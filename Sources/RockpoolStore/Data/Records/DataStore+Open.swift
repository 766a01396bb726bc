// Reads of all open operations, with what replay and reads keep of each in memory (docs/outbox.md#lanes, docs/outbox.md#reads).
import GRDB
import Logging
package import RockpoolCore

extension DataStore {
    /// Reduces the operations that have not ended, in the order they were accepted, each with the id of its entity. Nothing but the
    /// summary of one at a time is read: an outbox may hold a hundred thousand writes.
    package func reduceOpen<Total: Sendable>(
        into initial: Total, _ take: @escaping @Sendable (inout Total, OperationSummary, _ entityID: String?) -> Void
    ) async throws -> Total {
        let (read, whole) = try await reading { db -> (Total, [Int64]) in
            var (result, whole, texts) = (initial, [Int64](), SharedTexts())
            let sql = "SELECT \(Self.summaryColumns) FROM op WHERE \(OperationState.isOpen) ORDER BY seq"
            _ = try db.cachedStatement(sql: sql).all([], in: db) { columns in
                do {
                    var (summary, entityID) = try Self.summary(from: &columns)
                    // Only its fields say whether its signature ends then.
                    guard summary.expiresAt == nil else { return whole.append(summary.sequence) }
                    summary.share(&texts)
                    take(&result, summary, entityID)
                } catch {
                    // An unreadable row blocks only its own lane.
                    self.logger.error("an operation cannot be read: \(error)")
                }
            }
            return (result, whole)
        }
        var result = read
        for operation in try await operations(sequences: whole) { take(&result, OperationSummary(operation), operation.entityID) }
        return result
    }

    /// Returns the origins of the open operations, by the name of their upstream.
    package func openOrigins() async throws -> [(upstream: String, origin: OriginAddress)] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT DISTINCT upstream, origin FROM op WHERE \(OperationState.isOpen)")
            return try rows.map { row -> (upstream: String, origin: OriginAddress) in
                var columns = RowReader(row)
                return (upstream: try columns.next(), origin: try columns.origin())
            }
        }
    }

    /// Returns open writes to paths without a declared resource (docs/outbox.md#files-and-collections).
    package func openFiles() async throws -> [QueuedWrite] {
        try await light("\(OperationState.isOpen) AND entity_type IS NULL ORDER BY seq")
    }

    private static let summaryColumns = """
        seq, place, id, state, reason, method, entity_type, lane, upstream, priority, principal, accepted_at, first_sent_at, next_at,
        expires_at, probes, entity_id, (SELECT group_concat(needs) FROM op_dep WHERE op_dep.seq = op.seq),
        (SELECT max(started) FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun))
        """

    private static func summary(from columns: inout RowReader) throws(UnreadableRow) -> (OperationSummary, entityID: String?) {
        let (sequence, place): (Int64, Int64) = (try columns.next(), try columns.next())
        let id: String = try columns.next()
        let state: OperationState = try columns.nextWord()
        let reason: OperationReason? = try columns.word()
        let method = try columns.method()
        let collection: String? = try columns.nextIfAny()
        let (lane, upstream, priority): (String, String, Int) = (try columns.next(), try columns.next(), try columns.next())
        let principal = try columns.principal()
        let (acceptedAt, firstSentAt, dueAt) = (try columns.moment(), try columns.momentIfAny(), try columns.moment())
        let (expiresAt, probes): (Timestamp?, Int) = (try columns.momentIfAny(), try columns.next())
        let (entityID, needs): (String?, String?) = (try columns.nextIfAny(), try columns.nextIfAny())
        var summary = OperationSummary(
            sequence: sequence, place: place, id: id, state: state, reason: reason, method: method, lane: lane, upstream: upstream,
            priority: priority, principal: principal, acceptedAt: acceptedAt, firstSentAt: firstSentAt, lostAt: try columns.momentIfAny(),
            nextAttemptAt: dueAt, expiresAt: expiresAt, probes: probes)
        summary.collection = collection
        if let needs { summary.needs = Set(needs.split(separator: ",").compactMap { Int64($0) }) }
        return (summary, entityID)
    }
}
