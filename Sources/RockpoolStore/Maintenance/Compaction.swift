// Compaction: incremental steps by default, a full VACUUM when much is free and its copy has space (docs/storage.md#compaction step 5, 6).
import GRDB
import RockpoolCore

/// Compacts one database on its writer's connection.
struct Compaction: Sendable {
    let database: StoreDatabase
    let queue: CommitQueue
    let footprint: Footprint
    /// nil when reads of this store are too rare to need pacing.
    let pace: BackgroundThrottle?
    /// How long a commit may wait for a VACUUM before the VACUUM is aborted: clients wait for their commits.
    var patience: Duration = .milliseconds(250)

    /// Pages of a file, used and free.
    struct Pages: Equatable, Sendable {
        var count: Int
        var free: Int

        init(count: Int, free: Int) {
            self.count = count
            self.free = free
        }

        init(_ db: Database) throws {
            count = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            free = try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0
        }

        /// Returns an estimate of the pages after `bytes` of rows were removed.
        func freeing(_ bytes: Int64) -> Pages { Pages(count: count, free: min(count, free + Int(bytes / StoreDatabase.pageSize))) }

        /// The pages of the file once all free ones were given back.
        var used: Int { max(0, count - free) }

        /// Bytes that a VACUUM writes and temporarily needs beside the file: the live pages, and one eighth for worse packing.
        var copyBytes: Int64 {
            let live = Int64(max(0, count - free)) * StoreDatabase.pageSize
            return live + live / 8
        }
    }

    /// The decision for or against a full VACUUM, with the reason.
    struct Decision: Equatable, Sendable {
        var runs: Bool
        var why: String

        /// - Parameter isGranted: returns true if the limit allows this many bytes; called at most once.
        init(
            _ pages: Pages, at path: String, _ options: CleanupOptions, _ settings: CleanupSettings, isGranted: (Int64) -> Bool
        ) {
            // The copy is written to a temporary file and then through the log.
            let hasRoom = FreeSpace.bytes(at: path) > 2 * pages.copyBytes + .mib(16) && isGranted(pages.copyBytes)
            let percent = settings.vacuumWhenFreePercent
            let isMuchFree = pages.free * 100 > pages.count * percent
            let isDue = options.vacuum || (options.aggressive && pages.free > 0) || isMuchFree
            runs = isDue && hasRoom
            why =
                switch (options.vacuum, options.aggressive) {
                case _ where isDue && !hasRoom: "due, but no room for the copy: in steps"
                case (true, _): "asked for"
                case (_, true): isDue ? "aggressive" : "no page is free"
                default: isDue ? "more than \(percent)% free" : "at most \(percent)% free: in steps"
                }
        }
    }

    /// Decides by the number of free pages, then compacts. In a dry run the `freed` bytes of rows, an estimate, count as free too.
    func run(_ options: CleanupOptions, _ settings: CleanupSettings, freed: Int64) async throws -> CleanupReport.Vacuum {
        let footprint = footprint
        var pages = try await queue.outside { try Pages($0) }
        var report = CleanupReport.Vacuum()
        (report.pagesBefore, report.pagesAfter, report.freePages) = (pages.count, pages.count, pages.free)
        if options.dryRun { pages = pages.freeing(freed) }
        // The space for the copy is reserved, so that no other writer is granted it.
        let room = Reservation(granted: SpaceRequest(), of: footprint)
        let decision = Decision(pages, at: database.path, options, settings) { bytes in
            guard footprint.reserve(SpaceRequest(files: bytes)) == .granted else { return false }
            room.grow(by: SpaceRequest(files: bytes))
            return true
        }
        report.why = decision.why
        if options.dryRun {
            report.pagesAfter = pages.used
            return report
        }
        let isWhole = decision.runs ? try await vacuum() : false
        if !isWhole { try await giveBack() }
        // Measured again: a VACUUM without effect is recognised by remaining free pages.
        let after = try await queue.outside { db in
            // A reader may block the truncation for a moment; a later turn truncates the log.
            try? db.truncateLog()
            footprint.measure(in: db)
            return try Pages(db)
        }
        withExtendedLifetime(room) {}
        report.ran = isWhole && after.free == 0
        if isWhole && !report.ran { report.why += ", without effect" }
        if decision.runs && !isWhole { report.why += ", given up for others who waited: in steps" }
        (report.pagesAfter, report.freePages) = (after.count, after.free)
        return report
    }

    /// Runs VACUUM as one statement in one turn of the writer. The statement pauses while requests are served, and is aborted when commits
    /// wait too long.
    /// - Returns: true if it completed.
    private func vacuum() async throws -> Bool {
        let (queue, pace, patience) = (queue, pace, patience)
        return try await queue.outside { db in
            var began = ContinuousClock.now
            do {
                try db.watchingProgress {
                    let now = ContinuousClock.now
                    guard now - began >= .milliseconds(1) else { return true }
                    if queue.waited(until: now) > patience { return false }
                    pace?.rest(after: now - began)
                    began = .now
                    return true
                } while: {
                    try db.execute(sql: "VACUUM")
                }
                return true
            } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
                return false
            }
        }
    }

    /// Gives back a few pages per turn, with other jobs in between. The log is checkpointed, which shrinks the file, only after the pages
    /// of a long turn have been moved: a checkpoint writes and syncs, which delays cache hits more than moving pages does.
    private func giveBack() async throws {
        var moved = 0
        while true {
            let step = await pace?.next().pages(of: database.pagesPerStep) ?? database.pagesPerStep
            moved += step
            let isLong = moved >= database.pagesPerStep
            if isLong { moved = 0 }
            let hasGiven = try await queue.outside { db in
                let before = try Pages(db).free
                guard before > 0 else { return false }
                try db.giveBack(pages: step, copyingBack: isLong)
                return try Pages(db).free < before
            }
            if !hasGiven { return }
        }
    }
}
