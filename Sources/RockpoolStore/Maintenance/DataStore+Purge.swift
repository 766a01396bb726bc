// Purging of the outbox: announced, written down, then deleted; never an operation that another waits for (docs/outbox.md#retention
// *purged*).
import FoundationEssentials
import GRDB
import Glibc
import Logging
package import RockpoolCore

extension DataStore {
    /// Number of the newest attempts kept per operation, beside the first ones that may have reached the upstream.
    static let attemptLimit = 100
    /// Maximum number of lines of the sync log: 100,000, or fewer so that they take a tenth of the limit at 256 bytes each.
    var logLimit: Int64 { min(100_000, footprint.ledger.limit / 2560) }

    private static let batchRows = 200

    // MARK: - Purge

    /// Operations past their retention. A delivered operation that met a conflict has the retention of failed ones: until then the sides
    /// can be read and the result undone. An operation that another one waits for is excluded, so that a purge never releases it unnoticed.
    private static let ended = """
        (op.state = 'delivered' AND op.ended_at < ?1
                AND (op.ended_at < ?2 OR NOT EXISTS (SELECT 1 FROM conflict WHERE conflict.seq = op.seq))
            OR op.state IN ('dead', 'conflicted', 'cancelled', 'superseded') AND op.ended_at < ?2 AND NOT \(isAwaited))
        """

    private static func moments(_ retention: Retention, now: Timestamp) -> StatementArguments {
        [(now - retention.delivered).milliseconds, (now - retention.failed).milliseconds]
    }

    /// Returns the operations to purge; an operation that waits for another one comes before it.
    static func ended(in db: Database, retention: Retention, now: Timestamp) throws -> [(sequence: Int64, bytes: Int64)] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT seq, length(headers) + coalesce(length(body), 0) + coalesce(length(resp_body), 0) FROM op
                WHERE \(ended) ORDER BY seq
                """, arguments: moments(retention, now: now))
        let past = try rows.map { row -> (sequence: Int64, bytes: Int64) in
            var columns = RowReader(row)
            return (try columns.next(), try columns.next())
        }
        let known = Set(past.map(\.sequence))
        let expired = try expiring(in: db, since: now - retention.unproved).filter { !known.contains($0.sequence) }
        return past + expired.map { (sequence: $0.sequence, bytes: $0.bytes) }
    }

    /// Writes down the operations that have failed, with an fsync, then deletes them. Each row is checked again before deletion, because a
    /// person may have revived it.
    /// - Parameter noteGone: called per batch with the number of purged operations and those of them that were open.
    /// - Throws: the error of writing them down; then they stay.
    func purge(_ sequences: [Int64], retention: Retention, now: Timestamp, noteGone: (Int, [QueuedWrite]) -> Void) async throws {
        var rest = sequences[...]
        while !rest.isEmpty {
            let batch = rest.prefix(Self.batchRows)
            rest = rest.dropFirst(batch.count)
            try await writeDown(batch, now: now)
            FailPoint.purging.reached()
            let (count, stillOpen, unused) = try await queue.commit { db in
                let expired = Set(try Self.expiring(in: db, since: now - retention.unproved).map(\.sequence))
                let light = "SELECT \(OperationRow.lightColumns) FROM op WHERE seq = ? AND \(OperationState.isOpen)"
                var (count, stillOpen): (Int, [QueuedWrite]) = (0, [])
                for sequence in batch {
                    let row = try Row.fetchOne(db.cachedStatement(sql: light), arguments: [sequence])
                    guard try Self.purge(sequence, isExpired: expired.contains(sequence), retention: retention, in: db, now: now) else {
                        continue
                    }
                    count += 1
                    // An unreadable operation is not loaded by any component, so its removal needs no notice.
                    if let row, let operation = try? OperationRow.operation(from: row) { stillOpen.append(operation) }
                }
                let unused = try Self.forgetUnusedBlobs(in: db)
                FailPoint.purging.reached()
                return (count, stillOpen, unused)
            }
            FailPoint.purging.reached()
            noteGone(count, stillOpen)
            try await removeUnnamed(unused)
        }
    }

    /// Replaces one row by one line of the log. The id map, and the data needed to answer for a local id, stay.
    /// - Returns: false when the operation must stay.
    private static func purge(
        _ sequence: Int64, isExpired: Bool, retention: Retention, in db: Database, now: Timestamp
    ) throws -> Bool {
        let line = try db.cachedStatement(
            sql: """
                INSERT INTO sync_log (n, at, seq, event, detail) SELECT \(NextNumber.sql(of: "sync_log")), ?4, seq, 'purged',
                    state || ': ' || method || ' ' || origin || target || ' (' || id || ')' FROM op WHERE (?5 OR \(ended)) AND seq = ?3
                """)
        try line.execute(arguments: moments(retention, now: now) + [sequence, now.milliseconds, isExpired])
        guard db.changesCount > 0 else { return false }
        try db.cachedStatement(sql: "DELETE FROM op WHERE seq = ?").execute(arguments: [sequence])
        return true
    }

    /// - Returns: the hashes of blobs that no operation references any more; their rows are deleted.
    static func forgetUnusedBlobs(in db: Database) throws -> [String] {
        // Prepared once: live writes call it with every commit.
        try Data.fetchAll(db.cachedStatement(sql: "DELETE FROM blob WHERE refs = 0 RETURNING sha")).map { Digest.hex($0) }
    }

    /// Removes the request and response bodies of delivered operations, the oldest first, to make space for a new one: a queued write is
    /// worth more. The rows and their keys stay for their retention time, so that a repeated request is still recognised.
    /// - Returns: true if anything was removed.
    func shedDelivered() async throws -> Bool {
        let (count, unused) = try await translated {
            try await queue.commit { db in
                try db.execute(
                    sql: """
                        UPDATE op SET body = NULL, blob_sha = NULL, body_len = 0, resp_body = NULL WHERE seq IN (
                            SELECT seq FROM op WHERE state = 'delivered' AND (body IS NOT NULL OR blob_sha IS NOT NULL OR resp_body IS NOT NULL)
                                AND NOT EXISTS (SELECT 1 FROM conflict WHERE conflict.seq = op.seq) ORDER BY seq LIMIT 200)
                        """)
                let count = db.changesCount
                return (count, try Self.forgetUnusedBlobs(in: db))
            }
        }
        guard count > 0 else { return false }
        try await removeUnnamed(unused)
        let footprint = footprint
        try await queue.outside { db in
            try db.giveBack(pages: 65_536)
            footprint.measure(in: db)
        }
        return true
    }

    private func writeDown(_ sequences: some Sequence<Int64> & Sendable, now: Timestamp) async throws {
        let list = sequences.map { "\($0)" }.joined(separator: ", ")
        let ids = try await database.pool.read { db in
            try String.fetchAll(
                db, sql: "SELECT id FROM op WHERE seq IN (\(list)) AND \(OperationState.isOpen) ORDER BY seq")
        }
        let file = PurgedFile(directory: directory, month: now, footprint: footprint)
        let bounded = PurgedFile(unprovedIn: directory, limit: size(of: .unproved).multipliedClamped(by: 2), footprint: footprint)
        var written: Set<Bool> = []
        for id in ids {
            guard let operation = try await operation(id: id) else { continue }
            let record = try await record(of: operation)
            let isUnproved = operation.isUnproved
            try await lanes.run(0) { try (isUnproved ? bounded : file).append(record.serialized()) }
            written.insert(isUnproved)
        }
        for isUnproved in written { try await lanes.run(0) { try (isUnproved ? bounded : file).synchronize() } }
    }

    // MARK: - Notice

    private static var isToAnnounce: String {
        let states = Retention.announced.map { "'\($0.rawValue)'" }.sorted().joined(separator: ", ")
        return """
            op.state IN (\(states)) AND op.ended_at <= ? AND (op.warned_at IS NULL OR op.warned_at < op.ended_at) AND NOT \(isAwaited)
            """
    }

    private static func announcedSince(_ retention: Retention, now: Timestamp) -> StatementArguments {
        [(now - retention.failed + retention.notice).milliseconds]
    }

    /// Returns the number of purges to announce.
    static func purgesToAnnounce(in db: Database, retention: Retention, now: Timestamp) throws -> Int {
        try Set(Int64.fetchAll(db, sql: "SELECT seq FROM op WHERE \(isToAnnounce)", arguments: announcedSince(retention, now: now)))
            .union(announcedExpiring(in: db, retention: retention, now: now).filter { !$0.isAnnounced }.map(\.sequence)).count
    }

    /// Announces each purge once, before it is due.
    /// - Returns: the number of announced purges.
    func announcePurges(_ retention: Retention, now: Timestamp) async throws -> Int {
        let (failed, unproved) = try await queue.commit { db in
            (
                try String.fetchAll(
                    db, sql: "UPDATE op SET warned_at = ? WHERE \(Self.isToAnnounce) RETURNING id",
                    arguments: [now.milliseconds] + Self.announcedSince(retention, now: now)),
                try Self.announceExpiring(in: db, retention: retention, now: now)
            )
        }
        announce(failed, "failed operations", within: retention.notice)
        announce(unproved, "operations of clients that no upstream has accepted", within: retention.unprovedNotice)
        return failed.count + unproved.count
    }

    private func announce(_ ids: [String], _ what: String, within notice: TimeSpan) {
        guard !ids.isEmpty else { return }
        let list = ids.prefix(10).joined(separator: ", ") + (ids.count > 10 ? ", …" : "")
        logger.warning("\(ids.count) \(what) will be purged within \(notice) unless they are retried, edited or exported: \(list)")
    }

    /// Returns the number of announced purges, and the time of the first.
    package func announcedPurges(_ retention: Retention, now: Timestamp) async throws -> (count: Int, first: Timestamp?) {
        let states = Retention.announced.map { "'\($0.rawValue)'" }.sorted().joined(separator: ", ")
        return try await database.pool.read { db in
            let failed = try Row.fetchAll(
                db, sql: "SELECT seq, ended_at FROM op WHERE state IN (\(states)) AND ended_at <= ? AND NOT \(Self.isAwaited)",
                arguments: [(now - retention.failed + retention.notice).milliseconds])
            var moments: [Int64: Timestamp] = [:]
            for row in failed {
                var columns = RowReader(row)
                let sequence: Int64 = try columns.next()
                moments[sequence] = Timestamp(milliseconds: try columns.next()) + retention.failed
            }
            for one in try Self.announcedExpiring(in: db, retention: retention, now: now) {
                moments[one.sequence] = min(one.since + retention.unproved, moments[one.sequence] ?? .distantFuture)
            }
            return (moments.count, moments.values.min())
        }
    }

    // MARK: - Bounds

    /// Deletes old lines about operations without a row, except the line that records the purge, and the oldest lines past the log's limit.
    func trimLog(before moment: Timestamp) async throws {
        // Lines about what stays at this node of a fleet have numbers far beyond the others.
        let apart = HeldOperations.first
        let old = """
            at < ?1 AND event <> 'purged' AND NOT EXISTS (SELECT 1 FROM op WHERE op.seq = sync_log.seq)
                OR n <= (SELECT max(n) FROM sync_log WHERE n < \(apart)) - ?2
                OR n >= \(apart) AND n <= (SELECT max(n) FROM sync_log) - ?2
            """
        let limit = logLimit
        try await inSteps { db in
            try db.execute(
                sql: "DELETE FROM sync_log WHERE n IN (SELECT n FROM sync_log WHERE \(old) LIMIT 1000)",
                arguments: [moment.milliseconds, limit])
        }
    }

    /// Deletes all but the newest attempts. Per revision, the first attempt not known to be unsent and the first that may have reached the
    /// upstream stay, because the lifetime of the key starts there.
    func trimAttempts() async throws {
        try await inSteps { db in
            try db.execute(
                sql: """
                    DELETE FROM attempt WHERE (seq, n) IN (SELECT seq, n FROM attempt AS one
                        WHERE n <= (SELECT max(n) FROM attempt WHERE seq = one.seq) - ?
                            AND n IS NOT (SELECT min(n) FROM attempt WHERE seq = one.seq AND rev = one.rev AND evidence IS NOT 'no')
                            AND n IS NOT (SELECT min(n) FROM attempt WHERE seq = one.seq AND rev = one.rev AND evidence = 'maybe') LIMIT 1000)
                    """, arguments: [Self.attemptLimit])
        }
    }

    /// Deletes few rows at a time, so that no write waits long.
    private func inSteps(_ delete: @escaping @Sendable (Database) throws -> Void) async throws {
        var count = 0
        repeat {
            count = try await queue.commit { db in
                try delete(db)
                return db.changesCount
            }
        } while count > 0
    }

    // MARK: - Expiry
    // Expiry of operations without an accepted credential: they are removed soon after they were refused, because their client may never
    // return (docs/reference/behaviour.md#retention, `cleanup.unproved_after`).

    /// Returns unproved operations that have waited since `moment` or longer, the newest first: refused and parked ones, and never sent
    /// ones stuck behind them. An operation that may have taken effect is left out, and so is one that a remaining operation waits for.
    static func expiring(in db: Database, since moment: Timestamp) throws -> [Expiring] {
        let rows = try Row.fetchAll(db.cachedStatement(sql: stuck), arguments: [moment.milliseconds])
        guard !rows.isEmpty else { return [] }
        let waiters = try db.cachedStatement(sql: waiting)
        var going: Set<Int64> = []
        var found: [Expiring] = []
        for row in rows {
            var columns = RowReader(row)
            let sequence: Int64 = try columns.next()
            guard try Int64.fetchAll(waiters, arguments: [sequence]).allSatisfy({ going.contains($0) }) else { continue }
            going.insert(sequence)
            found.append(
                Expiring(
                    sequence: sequence, bytes: try columns.next(), since: Timestamp(milliseconds: try columns.next()),
                    isAnnounced: try columns.next()))
        }
        return found
    }

    /// Selects the candidates. A parked operation keeps the time of parking in `next_at`. A pending operation is stuck when the one before
    /// it, of its own principal in its lane, waits for a credential or is stuck behind such a one, or when one that it needs is refused, parked
    /// or stuck itself. Every join starts at the left, which
    /// has no more rows than the share of the unproved can contain; another plan would take quadratic time.
    private static let stuck = """
        WITH RECURSIVE stuck (seq) AS (
            SELECT op.seq FROM unproved CROSS JOIN op ON op.seq = unproved.seq
                WHERE (op.state = 'dead' AND op.ended_at <= ?1 OR op.state = 'parked' AND op.next_at <= ?1)
                    AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun))
            UNION
            SELECT next.seq FROM stuck CROSS JOIN op ON op.seq = stuck.seq CROSS JOIN op AS next ON next.seq = (\(nextInLane))
                WHERE (\(isOfCredential("op")) OR op.state = 'pending' AND EXISTS (SELECT 1 FROM op AS first WHERE first.lane = op.lane
                    AND first.upstream = op.upstream AND first.principal = op.principal AND first.place < op.place
                    AND \(isOfCredential("first")) AND \(OperationState.isOpen("first")))) AND \(isUnsent)
            UNION
            SELECT next.seq FROM stuck CROSS JOIN op_dep ON op_dep.needs = stuck.seq CROSS JOIN op AS next ON next.seq = op_dep.seq
                WHERE op_dep.kind NOT IN ('group', 'collection') AND \(isUnsent)
        ), moments (seq, bytes, since, warned_at) AS (
            SELECT op.seq, length(headers) + coalesce(length(body), 0) + coalesce(length(resp_body), 0),
                CASE state WHEN 'dead' THEN ended_at WHEN 'parked' THEN next_at ELSE accepted_at END, warned_at
            FROM stuck JOIN op ON op.seq = stuck.seq
        )
        SELECT seq, bytes, since, coalesce(warned_at >= since, 0) FROM moments ORDER BY seq DESC
        """

    /// True for a row that waits for the credential of its principal, and holds all behind it.
    private static func isOfCredential(_ row: String) -> String {
        "\(row).state = 'parked' AND \(row).reason = 'auth' AND \(row).principal <> ''"
    }

    private static let isUnsent = """
        next.state = 'pending' AND next.first_sent_at IS NULL AND next.accepted_at <= ?1
            AND EXISTS (SELECT 1 FROM unproved WHERE unproved.seq = next.seq)
        """

    /// The next operation of the same principal in the lane of `op`.
    private static let nextInLane = """
        SELECT later.seq FROM op AS later WHERE later.upstream = op.upstream AND later.lane = op.lane AND later.place > op.place
            AND later.principal = op.principal AND \(OperationState.isOpen("later")) ORDER BY later.place LIMIT 1
        """

    /// The operations that wait for a stuck one. In its lane the next one of its principal represents all later ones; an unproved operation
    /// holds back no other principal's.
    private static let waiting = """
        SELECT later.seq FROM op JOIN op AS later ON later.seq = (\(nextInLane)) WHERE op.seq = ?1 AND later.state = 'pending'
        UNION ALL SELECT later.seq FROM op_dep JOIN op AS later ON later.seq = op_dep.seq
            WHERE op_dep.needs = ?1 AND (later.state = 'pending' OR op_dep.kind NOT IN ('group', 'collection'))
                AND \(OperationState.isOpen("later"))
        """

    // MARK: - Notice

    /// Returns the operations that must have been announced by now.
    static func announcedExpiring(in db: Database, retention: Retention, now: Timestamp) throws -> [Expiring] {
        try expiring(in: db, since: now - retention.unproved + retention.unprovedNotice)
    }

    /// Marks the operations among these that were not announced yet.
    /// - Returns: their ids.
    static func announceExpiring(in db: Database, retention: Retention, now: Timestamp) throws -> [String] {
        try announcedExpiring(in: db, retention: retention, now: now).filter { !$0.isAnnounced }.reversed().flatMap { one in
            try String.fetchAll(
                db, sql: "UPDATE op SET warned_at = ? WHERE seq = ? RETURNING id", arguments: [now.milliseconds, one.sequence])
        }
    }
}

/// An unproved operation that expires (docs/storage.md#cleanup).
struct Expiring: Sendable {
    var sequence: Int64
    /// Approximate bytes of its row.
    var bytes: Int64
    /// Start of its retention time.
    var since: Timestamp
    /// True if its expiry has been announced since.
    var isAnnounced: Bool
}

/// `state_dir/purged-YYYYMM.jsonl`: purged operations that had failed, one per line, on the disk before their row is deleted
/// (docs/outbox.md#retention). It is of one month, or of the unproved operations, and counts against the data limit until the operator
/// removes it.
struct PurgedFile: Sendable {
    let path: String
    /// Bytes past which the file is restarted; nil: never.
    private let limit: Int64?
    private let directory: String
    private let footprint: Footprint

    init(directory: String, month moment: Timestamp, footprint: Footprint) {
        self.directory = directory
        self.footprint = footprint
        limit = nil
        let digits = RFC3339.format(moment).prefix(7).filter { $0 != "-" }
        path = "\(directory)/purged-\(digits).jsonl"
    }

    /// `purged-unproved.jsonl`, bounded, because clients without an accepted credential cause these lines and must not use up the space of
    /// others.
    /// - Parameter limit: bytes; a single longer line is written all the same.
    init(unprovedIn directory: String, limit: Int64, footprint: Footprint) {
        self.directory = directory
        self.footprint = footprint
        self.limit = limit
        path = "\(directory)/purged-unproved.jsonl"
    }

    /// Appends a line. An incomplete last line left by a crash is terminated first.
    /// - Throws: `DataStoreError.full`, `FileError`.
    func append(_ line: [UInt8]) throws {
        let length = Int64(line.count) + 2
        let room = SpaceRequest(files: Cost.file(length))
        guard footprint.reserve(room) == .granted else { throw DataStoreError.full }
        defer { footprint.release(room) }
        if let limit, let old = FileStatus.of(path), old.size + length > limit, Paths.remove(path) { footprint.addFixed(-old.allocated) }
        let before = FileStatus.of(path)
        let file = try Descriptor(path, O_RDWR | O_CREAT | O_APPEND)
        var last: UInt8 = 0x0A
        if let size = before?.size, size > 0 { unsafe pread(file.number, &last, 1, off_t(size - 1)) }
        try file.write(all: (last == 0x0A ? [] : [0x0A]) + line + [0x0A])
        footprint.addFixed((FileStatus.of(path)?.allocated ?? 0) - (before?.allocated ?? 0))
    }

    /// Makes the lines and the file's name survive a power failure.
    func synchronize() throws {
        try Descriptor(path, O_RDWR).synchronize()
        try Paths.synchronizeDirectory(directory)
    }
}
