// Quotas of upstreams: what one of them stores takes no space from the others beyond its quota
// (docs/storage.md#limits-and-shares *upstreams*).
import GRDB
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// A quota is kept by evicting down to this part of it, in percent, so that not every response that is stored evicts another.
    private static let quotaLowMark = 95

    /// Sets the most bytes that the entries of each origin may take, and evicts what exceeds them; other origins have no quota.
    /// - Parameter quotas: called on the writer, so that of two calls at the same time the newer quotas stay.
    /// - Throws: `DatabaseError`; the quotas that were set before then still apply.
    package func setQuotas(_ quotas: @escaping @Sendable () -> [OriginAddress: ByteCount]) async throws {
        let origins = try await queue.commit(weight: .mib(1)) { db in
            let quotas = Dictionary(uniqueKeysWithValues: quotas().map { ($0.url, $1.bytes) })
            if self.quotas.withLock({ $0 != quotas }) || quotas.isEmpty { try OriginSums.begin(for: quotas.keys, in: db) }
            self.quotas.withLock { $0 = quotas }
            return quotas.keys.sorted()
        }
        for origin in origins { await keepQuota(of: origin) }
    }

    /// Returns the bytes that the entries of an origin with a quota take; nil without a quota.
    package func bytesUnderQuota(of origin: OriginAddress) async throws -> Int64? {
        guard quota(of: origin.url) != nil else { return nil }
        return try await database.pool.read { db in
            try Int64.fetchOne(db, sql: "SELECT coalesce(sum(bytes), 0) FROM entry WHERE origin = ?", arguments: [origin.url])
        }
    }

    /// Returns the quota of an origin in bytes; nil without one.
    func quota(of origin: String) -> Int64? { quotas.withLock { $0[origin] } }

    /// True if an origin takes more than its quota.
    func exceedsQuota(_ origin: String, in db: Database) throws -> Bool {
        guard let quota = quota(of: origin) else { return false }
        return try OriginSums.bytes(of: origin, in: db) > quota
    }

    /// Evicts the least recently used entries of an origin down to the low mark of its quota. Pinned entries stay.
    func keepQuota(of origin: String) async {
        guard let quota = quota(of: origin) else { return }
        let goal = quota.percent(Self.quotaLowMark)
        try? await writeBackRecency()
        while true {
            let rows = try? await queue.commit { db in
                let excess = try OriginSums.bytes(of: origin, in: db) - goal
                guard excess > 0 else { return [] as [EvictionCandidate] }
                let rows = try self.leaving(excess, atMost: self.batchRows) {
                    try EvictionCandidate.fetch(
                        in: db, where: "origin = ? AND pinned = 0", arguments: [origin], order: "used_at", limit: $0)
                }
                return try self.delete(rows, in: db)
            }
            guard let rows, !rows.isEmpty else { return }
            noteEviction(of: rows)
        }
    }
}
