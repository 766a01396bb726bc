// Giving pages back: small steps by default, a full VACUUM when much is free and there is room for its copy (storage.md §6 step 5, 6).
import GRDB
import RockpoolCore

/// Compacts one database on its writer's connection.
struct Compaction: Sendable {
    let database: StoreDatabase
    let queue: CommitQueue
    /// Bytes that may be taken for the time of a VACUUM.
    let spare: Int64

    private struct Pages: Sendable {
        var count: Int
        var free: Int

        init(_ db: Database) throws {
            count = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            free = try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0
        }
    }

    /// Decides by what is free and what the steps before free (`freed` bytes, gone already unless this is a dry run), then acts.
    /// The pages are counted again afterwards: a VACUUM inside a transaction would silently do nothing.
    func run(_ options: CleanupOptions, _ settings: CleanupSettings, freed: Int64) async throws -> CleanupReport.Vacuum {
        let step = max(16, database.checkpointFrames / 2)
        let path = database.path
        let spare = spare
        return try await queue.outside { db in
            var report = CleanupReport.Vacuum()
            let before = try Pages(db)
            report.pagesBefore = before.count
            let free = before.free + (options.dryRun ? Int(freed / StoreDatabase.pageSize) : 0)
            let live = Int64(max(0, before.count - free)) * StoreDatabase.pageSize
            // The new copy passes through the log and a temporary file: twice the live pages for a while.
            let hasRoom = live + live / 8 <= spare && FreeSpace.bytes(at: path) > 2 * live + 16_777_216
            let isDue = options.vacuum || options.aggressive || free * 100 > before.count * settings.vacuumWhenFreePercent
            report.why = Self.why(isDue: isDue, hasRoom: hasRoom, free: free, options, settings)
            report.pagesAfter = before.count
            if options.dryRun { return report }
            if isDue && hasRoom && (free > 0 || options.vacuum) {
                try db.execute(sql: "VACUUM")
                report.ran = true
            } else {
                var left = free
                while left > 0 {
                    try db.execute(sql: "PRAGMA incremental_vacuum(\(step))")
                    _ = try db.checkpoint(.passive)
                    let now = try Pages(db).free
                    if now >= left { break }
                    left = now
                }
            }
            // A reader may hold the log for a moment; the next run cuts it.
            _ = try? db.checkpoint(.truncate)
            report.pagesAfter = try Pages(db).count
            return report
        }
    }

    private static func why(
        isDue: Bool, hasRoom: Bool, free: Int, _ options: CleanupOptions, _ settings: CleanupSettings
    ) -> String {
        if isDue && !hasRoom { return "due, but no room for the copy: in steps" }
        if options.vacuum { return "asked for" }
        if options.aggressive { return free > 0 ? "aggressive" : "no page is free" }
        return isDue
            ? "more than \(settings.vacuumWhenFreePercent)% free" : "at most \(settings.vacuumWhenFreePercent)% free: in steps"
    }
}

/// What `du` says.
enum DirectorySize {
    /// Allocated bytes of everything under a directory and of itself.
    static func allocated(_ path: String) -> Int64 {
        guard let status = FileStatus.of(path) else { return 0 }
        guard status.isDirectory else { return status.allocated }
        return Paths.names(in: path).reduce(status.allocated) { $0 + allocated("\(path)/\($1)") }
    }
}
