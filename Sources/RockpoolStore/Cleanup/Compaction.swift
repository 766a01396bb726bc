// Giving pages back: small steps by default, a full VACUUM when much is free and there is room for its copy (storage.md §6 step 5, 6).
import GRDB
import RockpoolCore

/// Compacts one database on its writer's connection.
struct Compaction: Sendable {
    let database: StoreDatabase
    let queue: CommitQueue
    let footprint: Footprint
    /// nil: nobody reads here often enough to mind.
    let pace: Pace?
    /// For so long a commit waits for a VACUUM, which is given up then: clients wait for their commits.
    var patience: Duration = .milliseconds(250)

    /// Pages of a file, those in use and those that are free.
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

        /// As it would be with `bytes` of rows gone; an estimate.
        func freeing(_ bytes: Int64) -> Pages { Pages(count: count, free: min(count, free + Int(bytes / StoreDatabase.pageSize))) }

        /// Bytes that a VACUUM writes, and for a while beside the file: what is live, and an eighth for what packs worse.
        var copyBytes: Int64 {
            let live = Int64(max(0, count - free)) * StoreDatabase.pageSize
            return live + live / 8
        }
    }

    /// Whether a full VACUUM is to run, and why (not).
    struct Decision: Equatable, Sendable {
        var runs: Bool
        var why: String

        /// - Parameter isGranted: whether the limit has room for so many bytes; asked once.
        init(
            _ pages: Pages, at path: String, _ options: CleanupOptions, _ settings: CleanupSettings, isGranted: (Int64) -> Bool
        ) {
            // The copy goes through the log and a temporary file.
            let hasRoom = FreeSpace.bytes(at: path) > 2 * pages.copyBytes + 16_777_216 && isGranted(pages.copyBytes)
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

    /// Decides by what is free, then acts. In a dry run `freed` bytes of rows count as free already; they are an estimate.
    func run(_ options: CleanupOptions, _ settings: CleanupSettings, freed: Int64) async throws -> CleanupReport.Vacuum {
        let footprint = footprint
        var pages = try await queue.outside { try Pages($0) }
        var report = CleanupReport.Vacuum()
        (report.pagesBefore, report.pagesAfter, report.freePages) = (pages.count, pages.count, pages.free)
        if options.dryRun { pages = pages.freeing(freed) }
        // Room for the copy is held, so that nobody else is promised the same.
        let room = Reservation(granted: Room(), of: footprint)
        let decision = Decision(pages, at: database.path, options, settings) { bytes in
            guard footprint.reserve(Room(files: bytes)) == .granted else { return false }
            room.grow(by: Room(files: bytes))
            return true
        }
        report.why = decision.why
        if options.dryRun { return report }
        let isWhole = decision.runs ? try await vacuum() : false
        if !isWhole { try await giveBack() }
        // Counted again: a VACUUM that did nothing says so by its free pages.
        let after = try await queue.outside { db in
            // A reader may hold the log for a moment; a later turn cuts it.
            try? db.truncateLog()
            footprint.measure(db)
            return try Pages(db)
        }
        withExtendedLifetime(room) {}
        report.ran = isWhole && after.free == 0
        if isWhole && !report.ran { report.why += ", without effect" }
        if decision.runs && !isWhole { report.why += ", given up for others who waited: in steps" }
        (report.pagesAfter, report.freePages) = (after.count, after.free)
        return report
    }

    /// One statement, and one turn of the writer, which rests beside hits and gives up for those who wait for it.
    /// - Returns: whether it came to its end.
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

    /// A few pages a turn, others passing between. They are copied back from the log, so that the file shrinks, when a long turn's worth is
    /// in it: that is written and synced, which hits feel more than the moving.
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
