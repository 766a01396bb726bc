// Scrub of a cache store: the walk of `CacheScrub` with the store's repairs; read-only for a stopped store.
import FoundationEssentials
import GRDB
import Logging
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// Checks pages, every body and every sum, and repairs them: removes entries with bad or missing bodies and files without a row, and
    /// corrects sums. Foreign files are left alone. Errors are in the report's `errors`.
    /// - Parameter dryRun: finds the same, and changes nothing.
    package func scrub(
        dryRun: Bool = false, now: Timestamp, progress: @escaping @Sendable (ScrubProgress) -> Void = { _ in }
    ) async -> ScrubReport {
        let run = ScrubRun("cache", dryRun: dryRun, startedAt: now, progress: progress)
        await sweep.withLock(\.self)?.value
        let bodies = bodies
        var drift: Int64 = 0
        await run.attempt("ledger") { drift = try await audit(now: now).driftBytes }
        let scrub = CacheScrub(
            directory: directory, reader: database.pool, seal: seal, deeds: dryRun ? nil : scrubDeeds, isAwaited: { bodies.isAwaited($0) })
        await scrub.clean(run)
        run.note { [drift] in $0.cache?.drift.ledgerBytes = drift }
        if !dryRun, run.report.cache?.pages.isEmpty == true {
            await run.attempt("ledger") {
                _ = try await ledgerDrift(settling: true)
                try await audit(now: now)
            }
        }
        let report = run.report
        if !report.isClean { logger.warning("the scrub of the cache found damage", metadata: ["dropped": "\(report.cache?.dropped ?? 0)"]) }
        return report
    }

    /// Marks a scrub as running until `endScrub`.
    /// - Returns: false when one is running already.
    package func beginScrub() -> Bool {
        counters.withLock { counters in
            defer { counters.isScrubbing = true }
            return !counters.isScrubbing
        }
    }

    package func endScrub() { counters.withLock { $0.isScrubbing = false } }

    private var scrubDeeds: CacheScrubDeeds {
        CacheScrubDeeds(
            dropBad: { [self] in try await dropBad($0) },
            dropMissing: { [self] in try await dropMissing($0) },
            dropEntry: { [self] in try await dropEntry($0) },
            unlink: deeds.unlink,
            recount: { [self] in try await recount($0) },
            settle: { [self] sums in try await queue.commit { try sums.settle(in: $0) } })
    }

    /// Hashes the body again, because it may have been stored anew since. A file is named only on the writer's thread, and is recorded as
    /// verified there.
    private func dropBad(_ hash: [UInt8]) async throws -> Int {
        bodies.doubt(hash)
        guard let body = try await storedBody(hash), try await lanes.run(1, { try body.verdict(self.seal) }) != .intact else { return 0 }
        let count = try await dropFile(hash) { !self.bodies.isVerified(hash) }
        counters.withLock { $0.badBodies += count > 0 ? 1 : 0 }
        return count
    }

    private func storedBody(_ hash: [UInt8]) async throws -> StoredBody? {
        try await database.pool.read { db in
            let sql = "SELECT \(StoredBody.fileColumns) FROM body WHERE sha = ?"
            return try Row.fetchOne(db, sql: sql, arguments: [hash.data]).map { row in
                var columns = RowReader(row)
                return try StoredBody(file: &columns, at: self.bodies.path(of:))
            }
        }
    }

    private func dropMissing(_ hash: [UInt8]) async throws -> Int {
        try await dropFile(hash) { FileStatus.of(self.bodies.path(of: hash)) == nil }
    }

    /// Deletes the entries that reference a file, in batches, while `isGone` is true on the writer's thread.
    private func dropFile(_ hash: [UInt8], while isGone: @escaping @Sendable () -> Bool) async throws -> Int {
        var count = 0
        while true {
            let rows = try await take(dryRun: false, as: .cleanedUp) { db in
                guard isGone() else { return [] }
                return try EvictionCandidate.fetch(
                    in: db, where: "in_file = 1 AND body_sha = ?", arguments: [hash.data], limit: self.batchRows)
            }
            if rows.isEmpty { break }
            count += rows.count
        }
        // A row with a reference count for missing entries would never be deleted.
        try await recount(hash)
        return count
    }

    private func dropEntry(_ id: Int64) async throws -> Bool {
        let rows = try await take(dryRun: false, as: .cleanedUp) { db in
            let sql = "SELECT \(StoredBody.rowColumns) FROM entry WHERE in_file = 0 AND id = ?"
            guard let row = try Row.fetchOne(db, sql: sql, arguments: [id]) else { return [] }
            var columns = RowReader(row)
            guard try StoredBody(row: &columns).verdict(self.seal) == .bad else { return [] }
            return try EvictionCandidate.fetch(in: db, where: "id = ?", arguments: [id], limit: 1)
        }
        counters.withLock { $0.badBodies += rows.count }
        return !rows.isEmpty
    }

    /// Recomputes the references and the allocated bytes of a body in its row, its entries and the sums; deletes a body without entries.
    /// The ledger is corrected from the sums at the end of the scrub.
    private func recount(_ hash: [UInt8]) async throws {
        try await queue.commit { db in
            let before = try Int64.fetchOne(db, sql: "SELECT allocated FROM body WHERE sha = ?", arguments: [hash.data])
            guard let before else { return }
            let allocated = FileStatus.of(self.bodies.path(of: hash))?.allocated ?? before
            try db.execute(
                sql: """
                    UPDATE body SET refs = (SELECT count(*) FROM entry WHERE in_file = 1 AND body_sha = ?1), allocated = ?2 WHERE sha = ?1
                    """, arguments: [hash.data, allocated])
            try db.execute(sql: "UPDATE entry SET bytes = ? WHERE in_file = 1 AND body_sha = ?", arguments: [allocated, hash.data])
            try db.execute(sql: "UPDATE total SET bytes = bytes + ? WHERE name = 'bodies'", arguments: [allocated - before])
            try self.dropUnusedBodies(in: db)
        }
    }

    /// Returns the report that `scrub` would produce, by the same walk; for a stopped server. Changes nothing; there is no ledger to check.
    package static func scrubWhileStopped(
        _ directory: String, seal: BodySeal? = nil, now: Timestamp, progress: @escaping @Sendable (ScrubProgress) -> Void = { _ in }
    ) async -> ScrubReport {
        let run = ScrubRun("cache", dryRun: true, startedAt: now, progress: progress)
        await run.attempt("open") {
            let lock = try CacheDirectoryTag.lockToLook(in: directory)
            defer { lock?.release() }
            try await StoppedDatabase.read("\(directory)/cache.sqlite", identity: CacheSchema.identity) { database in
                guard let database else { return }
                await CacheScrub(directory: directory, reader: database, seal: seal, deeds: nil, isAwaited: { _ in false }).clean(run)
            }
        }
        return run.report
    }

    // MARK: - The audit
    // Daily comparison of the ledger with the allocated blocks on the disk; a difference is a bug (docs/storage.md#scrub).

    /// The interval between audits.
    static let auditInterval = TimeSpan.days(1)

    func auditWhenDue(now: Timestamp) async throws {
        let last = lastAudit.withLock(\.self)?.at
        // A clock that was set back must not postpone the audit.
        if let last, now >= last, now < last + Self.auditInterval { return }
        let audit = try await audit(now: now)
        guard audit.driftBytes != 0 else { return }
        logger.warning(
            "the ledger and the disk disagree about the bodies; rockpool doctor --scrub sets it right",
            metadata: ["drift_bytes": "\(audit.driftBytes)", "disk_bytes": "\(audit.diskBytes)"])
    }

    /// Compares by `stat`; no file is read. Each directory of bodies is one turn of the writer's thread, the only thread that adds and
    /// removes names: a concurrent write is counted on both sides or on neither.
    @discardableResult
    func audit(now: Timestamp) async throws -> LedgerAudit {
        var audit = LedgerAudit(at: now, diskBytes: 0, driftBytes: 0)
        let (bodies, shards) = (bodies, BodyShards(root: bodies.root))
        for shard in UInt8.min...UInt8.max {
            let (counted, found) = try await queue.outside { db in
                let statement = try db.cachedStatement(sql: "SELECT coalesce(sum(allocated), 0) FROM body WHERE sha >= ? AND sha < ?")
                let named = try Int64.fetchOne(statement, arguments: BodyShards.bounds(of: shard)) ?? 0
                let found = shards.names(inShard: Digest.hex([shard])).bodies.reduce(Int64(0)) {
                    $0 + (FileStatus.of(bodies.path(of: $1))?.allocated ?? 0)
                }
                return (named + bodies.suspectBytes(inShard: shard), found)
            }
            audit.diskBytes += found
            audit.driftBytes += counted - found
        }
        // Concurrent writes do not change either of these differences.
        audit.driftBytes += try await database.pool.read { try BodySum.drift(in: $0) } + ledgerDrift()
        lastAudit.withLock { [audit] in $0 = audit }
        return audit
    }

    /// Returns the bytes that the ledger in memory counts for bodies beyond their sum in the database.
    /// - Parameter settling: true corrects the ledger.
    func ledgerDrift(settling: Bool = false) async throws -> Int64 {
        let (bodies, footprint) = (bodies, footprint)
        return try await queue.outside { db in
            let sum = try Int64.fetchOne(db, sql: "SELECT bytes FROM total WHERE name = 'bodies'") ?? 0
            let drift = footprint.parts.files - sum - bodies.suspectBytes()
            if settling && drift != 0 { footprint.addFiles(-drift) }
            return drift
        }
    }
}

/// The sum of the allocated bytes of all bodies, kept by triggers.
enum BodySum {
    /// Returns the excess of the sum over the rows it sums up.
    static func drift(in db: Database) throws -> Int64 {
        try Int64.fetchOne(
            db,
            sql: """
                SELECT coalesce((SELECT bytes FROM total WHERE name = 'bodies'), 0) - (SELECT coalesce(sum(allocated), 0) FROM body)
                """) ?? 0
    }
}
