// Daily comparison of the ledger with the allocated blocks on the disk; a difference is a bug (docs/storage.md#scrub).
import GRDB
import Logging
import RockpoolCore
import Synchronization

extension CacheStore {
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
