// The queues of telemetry routes: what waits there, and what was dropped at their limits (docs/outbox.md#telemetry).
import GRDB
package import RockpoolCore

/// What waits on one telemetry route, and what was dropped there since the store was created.
package struct TelemetryQueue: Hashable, Sendable {
    /// The limit that a write was dropped at.
    package enum Limit: String, CaseIterable, Sendable { case age, bytes }

    package var upstream: String
    /// The pattern of the route.
    package var route: String
    /// Writes that wait, those that the receiver has refused among them.
    package var waiting = 0
    package var refused = 0
    /// The bytes of those that count against the route's limit.
    package var bytes: Int64 = 0
    package var oldest: Timestamp?
    package var dropped: [Limit: Int] = [:]

    package init(upstream: String, route: String) { (self.upstream, self.route) = (upstream, route) }
}

extension DataStore {
    /// Beginning of the names under which `total` counts what was dropped: `dropped LIMIT QUEUE`.
    private static let droppedMark = "dropped "
    /// The most writes dropped for one that comes; a limit that was lowered is reached by the next ones.
    private static let dropLimit = 1000

    /// Drops the oldest writes of a telemetry queue until the rest is within its limit; those in flight stay.
    /// - Returns: the dropped ones, without bodies.
    /// - Throws: `DataStoreError.queueFull` if the new write alone is larger than the limit.
    func makeRoom(for new: QueuedWriteDraft, as sequence: Int64, in db: Database) throws -> [QueuedWrite] {
        guard let limit = new.queueLimit?.bytes else { return [] }
        guard new.body.length <= limit else { throw DataStoreError.queueFull(name: new.upstream, limit: ByteCount(limit)) }
        let queue = Lane.telemetryQueue(of: new.lane)
        var dropped: [QueuedWrite] = []
        while try ShareSums.bytes(on: queue, in: db) > limit {
            guard let oldest = try Self.oldest(of: queue, before: sequence, from: firstOwn, in: db) else { break }
            try Self.delete(oldest, in: db)
            dropped.append(oldest)
            if dropped.count == Self.dropLimit { break }
        }
        try Self.count(dropped.count, of: queue, at: .bytes, in: db)
        return dropped
    }

    /// Drops a telemetry write that has waited as long as its route keeps it.
    /// - Returns: what it was, as cancelled.
    /// - Throws: `.notFound`; `.illegal` if it is in flight; `.refused` if it is shared and this node of a fleet is alone.
    package func dropOutlived(id: String) async throws -> QueuedWrite {
        let (dropped, unused) = try await recorded {
            try await queue.commit { db -> (QueuedWrite, [String]) in
                let sql = "SELECT \(OperationRow.lightColumns) FROM op WHERE id = ? AND \(OperationState.isOpen)"
                let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [id])
                guard let row else { throw DataStoreError.notFound(id: id) }
                let operation = try OperationRow.operation(from: row)
                guard operation.isTelemetry, operation.state != .inflight else {
                    throw DataStoreError.illegal(from: operation.state, to: .cancelled)
                }
                guard operation.sequence >= self.firstOwn else { throw DataStoreError.refused("it is shared, and this node is alone") }
                try Self.delete(operation, in: db)
                try Self.count(1, of: Lane.telemetryQueue(of: operation.lane), at: .age, in: db)
                return (operation, try Self.forgetUnusedBlobs(in: db))
            }
        }
        try await removeUnnamed(unused)
        var ended = dropped
        (ended.state, ended.reason) = (.cancelled, .expired)
        return ended
    }

    /// Returns the queue of every telemetry route, and of former ones that have dropped something.
    package func telemetryQueues(of routes: RouteTable) async throws -> [TelemetryQueue] {
        let declared = routes.upstreams.flatMap { upstream in
            upstream.routes.filter { $0.kind == .telemetry }.map { TelemetryQueue(upstream: upstream.name, route: $0.match) }
        }
        return try await reading { db in
            var queues: [String: TelemetryQueue] = [:]
            for queue in declared { queues[Lane.telemetryQueue(upstream: queue.upstream, route: queue.route)] = queue }
            for (name, limit, count) in try Self.droppedCounts(in: db) {
                guard let upstream = name.split(separator: " ").first.map({ String($0) }) else { continue }
                let former = TelemetryQueue(upstream: upstream, route: Lane.route(ofQueue: name, upstream: upstream))
                queues[name, default: former].dropped[limit] = count
            }
            for (name, queue) in queues { queues[name] = try Self.filled(queue, named: name, in: db) }
            return queues.values.sorted { ($0.upstream, $0.route) < ($1.upstream, $1.route) }
        }
    }

    private static func filled(_ queue: TelemetryQueue, named name: String, in db: Database) throws -> TelemetryQueue {
        let sql = """
            SELECT count(*), coalesce(sum(state = 'dead'), 0), coalesce(sum(\(ShareSums.cost("op"))), 0), min(accepted_at) FROM op
            WHERE \(isOf)
            """
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: range(of: name)) else { return queue }
        var (columns, queue) = (RowReader(row), queue)
        (queue.waiting, queue.refused, queue.bytes) = (try columns.next(), try columns.next(), try columns.next())
        queue.oldest = try columns.momentIfAny()
        return queue
    }

    private typealias Dropped = (queue: String, limit: TelemetryQueue.Limit, count: Int)

    private static func droppedCounts(in db: Database) throws -> [Dropped] {
        let sql = "SELECT name, value FROM total WHERE name >= ? AND name < ?"
        let rows = try Row.fetchAll(db, sql: sql, arguments: [droppedMark, droppedMark + "\u{10FFFF}"])
        return try rows.compactMap { row -> Dropped? in
            var columns = RowReader(row)
            let (name, count): (String, Int) = (try columns.next(), try columns.next())
            let parts = name.dropFirst(droppedMark.count).split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let limit = TelemetryQueue.Limit(rawValue: String(parts[0])) else { return nil }
            return (String(parts[1]), limit, count)
        }
    }

    /// True for the open rows of a queue, in the words of the partial index of lanes, whose order is that of acceptance here.
    private static let isOf = "lane > ? AND lane < ? AND \(OperationState.isOpen)"

    /// A number follows the space, and no `!` does.
    private static func range(of queue: String) -> StatementArguments { [queue + " ", queue + "!"] }

    /// The first number that may be dropped: what is shared stays as it is while this node of a fleet is alone.
    private var firstOwn: Int64 { replica?.isAlone == true ? HeldOperations.first : 0 }

    private static func oldest(of queue: String, before sequence: Int64, from first: Int64, in db: Database) throws -> QueuedWrite? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(OperationRow.lightColumns) FROM op WHERE \(isOf) AND state <> 'inflight' AND seq <> ? AND seq >= ?
                    ORDER BY lane LIMIT 1
                """)
        let row = try Row.fetchOne(statement, arguments: range(of: queue) + [sequence, first])
        return try row.map { try OperationRow.operation(from: $0) }
    }

    private static func delete(_ operation: QueuedWrite, in db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM op WHERE seq = ?").execute(arguments: [operation.sequence])
    }

    private static func count(_ count: Int, of queue: String, at limit: TelemetryQueue.Limit, in db: Database) throws {
        guard count > 0 else { return }
        try db.cachedStatement(
            sql: "INSERT INTO total (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
        ).execute(arguments: ["\(droppedMark)\(limit.rawValue) \(queue)", count])
    }
}
