// Cleanup of the cache: expired, over-share assets, orphans, pages, log. Decided first, then done (storage.md §6).
import GRDB
package import RockpoolCore

/// What a cleanup takes for one reason.
private struct Taking: Sendable {
    var reason: String
    var rows: [Leaving]
}

extension CacheStore {
    /// Runs the steps for the cache. A dry run takes the same decisions, and stops before each deed; what memory knows of recency
    /// is written into the rows in both, as it would be at any eviction.
    /// - Throws: only when the database cannot be read; what else fails is in the report's `errors`.
    package func cleanup(_ options: CleanupOptions, settings: CleanupSettings, now: Timestamp) async throws -> CleanupReport {
        let began = ContinuousClock.now
        var report = CleanupReport(options, startedAt: now)
        report.files.cacheBefore = DirectorySize.allocated(directory)
        try await writeBackRecency()
        let takings = try await database.pool.read { db in try self.takings(db, options, settings, now) }
        for taking in takings {
            report.count(taking.rows, as: taking.reason)
            if !options.dryRun { await attempt("removal", &report) { try await self.remove(taking.rows) } }
        }
        let leaving = takings.reduce(into: Set<Int64>()) { ids, taking in ids.formUnion(taking.rows.map(\.id)) }
        let orphans = try await lanes.run(1) { try self.orphans(includingTemporaries: true, leaving: leaving) }
        report.orphans = orphans.count
        if !options.dryRun {
            await attempt("orphans", &report) {
                _ = try await self.lanes.run(1) { try orphans.removeFiles() }
                _ = try await self.remove(orphans.rows)
            }
        }
        let freed = takings.flatMap(\.rows).reduce(0) { $0 + $1.inlineBytes }
        await compact(options, settings, freed: freed, &report)
        report.files.cacheAfter = DirectorySize.allocated(directory)
        report.seconds = (ContinuousClock.now - began) / .seconds(1)
        return report
    }

    private func compact(_ options: CleanupOptions, _ settings: CleanupSettings, freed: Int64, _ report: inout CleanupReport) async {
        let spare = self.settings.cacheLimit.bytes - footprint.ledger.used - footprint.ledger.reserved
        let compaction = Compaction(database: database, queue: queue, spare: spare)
        do {
            report.vacuum = try await compaction.run(options, settings, freed: freed)
        } catch {
            report.errors.append("compaction: \(error)")
        }
    }

    private func attempt(_ step: String, _ report: inout CleanupReport, _ body: () async throws -> Void) async {
        do { try await body() } catch { report.errors.append("\(step): \(error)") }
    }

    /// Which entries go, and why. Each entry goes for the first reason that holds.
    private func takings(
        _ db: Database, _ options: CleanupOptions, _ settings: CleanupSettings, _ now: Timestamp
    ) throws -> [Taking] {
        let moment = now.milliseconds
        let unused = (now - settings.expiredAfter).milliseconds
        let expired = try Leaving.fetch(
            db,
            where: options.aggressive
                ? "pinned = 0 AND fresh_until < ?1"
                : "pinned = 0 AND (kept_until < ?1 OR (fresh_until < ?1 AND used_at < ?2))",
            arguments: options.aggressive ? [moment] : [moment, unused], limit: .max)
        let gone = Set(expired.map(\.id))
        var assets = try Leaving.fetch(
            db, where: "pinned = 0 AND category = ?", arguments: [Category.assets.name], order: "used_at", limit: .max
        ).filter { !gone.contains($0.id) }
        if !options.aggressive {
            let share = categories.first { $0.name == Category.assets.name }?.sharePercent ?? Category.assets.sharePercent
            let over = assets.reduce(0) { $0 + $1.bytes } - self.settings.cacheLimit.bytes.percent(share)
            assets = assets.reaching(over)
        }
        let isAsked = { (row: Leaving) in
            (options.category.map { $0 == row.category } ?? true) && (options.olderThan.map { row.usedAt < now - $0 } ?? true)
        }
        return [
            Taking(reason: "expired", rows: expired.filter(isAsked)), Taking(reason: "assets", rows: assets.filter(isAsked)),
        ]
    }

    private func remove(_ rows: [Leaving]) async throws {
        var rest = rows[...]
        while !rest.isEmpty {
            let batch = Array(rest.prefix(batchRows))
            _ = try await take(dryRun: false) { _ in batch }
            rest = rest.dropFirst(batch.count)
        }
    }
}
