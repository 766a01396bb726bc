// Scrub of the outbox's database and blobs: every page and every body; the only change is the removal of unreferenced files
// (docs/storage.md#scrub).
import FoundationEssentials
import GRDB
import Logging
package import RockpoolCore
import Synchronization

/// One walk over a data store, running or stopped.
struct DataScrub: Sendable {
    let directory: String
    let reader: any DatabaseReader
    /// Opens what lies sealed; nil where no key is at hand.
    let seal: BodySeal?
    /// A lane of its own: hashing must not delay accepting writes.
    let lanes = FileLanes(label: "rockpool.scrub", count: 1)
    let now: Timestamp
    /// Unlinks blobs that still have no row. nil in a dry run.
    let unlink: (@Sendable ([String]) async throws -> Int)?
    /// Returns the files of writers: temporaries, and blobs that no row references yet.
    let held: @Sendable () -> (spools: Set<String>, unattached: Set<String>)

    /// Minimum age of an orphan: any writer may be about to add the row of a younger file.
    static let youngestOrphan = TimeSpan.minutes(5)

    /// Operations that reference a blob.
    fileprivate struct Named: Sendable {
        var count = 0
        /// Public ids of the operations that have not ended.
        var open: [String] = []
    }

    func look(_ run: ScrubRun) async {
        run.note { $0.data = ScrubReport.Data() }
        var isSound = false
        await run.attempt("pages") {
            let problems = try await PageCheck.problems(reader, byTable: false)
            run.note { $0.data?.pages = problems }
            isSound = problems.isEmpty
        }
        await run.attempt("foreign keys") {
            let strays = try await reader.read { try Row.fetchAll($0, sql: "PRAGMA foreign_key_check").count }
            run.note { $0.data?.strays = strays }
        }
        isSound = await run.attempt("blobs") { try await checkBlobs(run) } && isSound
        // A blob without a visible row may be the only copy of a body referenced on a damaged page.
        let unlink = isSound ? unlink : nil
        await run.attempt("orphans") { try await takeOrphans(unlink, run: run) }
        await run.attempt("foreign") {
            let root = "\(directory)/blobs"
            let names = try await lanes.run(0) { Paths.names(in: root).filter { $0 != "tmp" && Digest.bytes($0) == nil } }
            run.note { $0.data?.foreign.add(names) }
        }
    }

    fileprivate func checkBlobs(_ run: ScrubRun) async throws {
        let (blobs, named) = try await reader.read { db in (try allBlobs(in: db), try Self.named(in: db)) }
        run.expect(blobs.count)
        for (body, references) in blobs {
            try Task.checkCancellation()
            let verdict = await run.verdict(of: body.asBlob(), seal: seal, on: lanes)
            run.passed()
            let name = Digest.hex(body.hash)
            if verdict != .intact, try await !isStillNamed(body.hash) { continue }
            run.note { report in
                report.data?.blobs.add(body, verdict)
                if references != named[name]?.count ?? 0 { report.data?.references += 1 }
                guard let verdict, verdict != .intact else { return }
                report.data?.badBlobs.append(
                    .init(sha256: name, what: verdict == .bad ? "bad" : "missing", operations: named[name]?.open ?? []))
            }
        }
        let known = Set(blobs.map { Digest.hex($0.body.hash) })
        for (name, operations) in named.sorted(by: { $0.key < $1.key }) where !known.contains(name) {
            run.note { $0.data?.badBlobs.append(.init(sha256: name, what: "unnamed", operations: operations.open)) }
        }
    }

    private func allBlobs(in db: Database) throws -> [(body: StoredBody, references: Int)] {
        try Row.fetchAll(db, sql: "SELECT \(StoredBody.blobColumns), refs FROM blob ORDER BY sha").map { row in
            var columns = RowReader(row)
            let body = try StoredBody(file: &columns) { "\(directory)/blobs/\(Digest.hex($0))" }
            return (body, try columns.next())
        }
    }

    fileprivate static func named(in db: Database) throws -> [String: Named] {
        let sql = "SELECT blob_sha, id, ended FROM \(try LiveWriteRow.bodyOwners(in: db)) ORDER BY id"
        return try Row.fetchAll(db, sql: sql).reduce(into: [:]) { named, row in
            var columns = RowReader(row)
            let name = Digest.hex(try columns.next(Data.self))
            let id: String = try columns.next()
            named[name, default: Named()].count += 1
            if try !columns.next(Bool.self) { named[name]?.open.append(id) }
        }
    }

    private func isStillNamed(_ hash: [UInt8]) async throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM blob WHERE sha = ?)"
        return try await reader.read { try Bool.fetchOne($0, sql: sql, arguments: [hash.data]) } ?? false
    }

    private func takeOrphans(_ unlink: (@Sendable ([String]) async throws -> Int)?, run: ScrubRun) async throws {
        let look = OutboxLook(reader: reader, directory: directory, lanes: lanes)
        let strays = try await look.orphans(held: held).blobs
        // An operation may still need the file of a blob without a row.
        let needed = Set(run.report.data?.badBlobs.map(\.sha256) ?? [])
        let (directory, before) = (directory, now - Self.youngestOrphan)
        let old = try await lanes.run(0) {
            strays.filter { name in
                let modified = FileStatus.of("\(directory)/blobs/\(name)")?.modified
                return !needed.contains(name) && modified.map { $0 <= before } == true
            }
        }
        let count = try await unlink?(old) ?? old.count
        run.note { $0.data?.orphans += count }
    }
}

extension DataStore {
    /// Checks pages, foreign keys and every blob. Removes blobs without a row, as a cleanup does, and nothing else; damage is reported
    /// together with the operations that need the data. Errors are in the report's `errors`.
    /// - Parameter dryRun: finds the same, and changes nothing.
    package func scrub(
        dryRun: Bool = false, now: Timestamp, progress: @escaping @Sendable (ScrubProgress) -> Void = { _ in }
    ) async -> ScrubReport {
        let run = ScrubRun("data", dryRun: dryRun, startedAt: now, progress: progress)
        let unlink: @Sendable ([String]) async throws -> Int = { [self] in try await removeUnnamed($0) }
        let scrub = DataScrub(
            directory: directory, reader: database.pool, seal: seal, now: now, unlink: dryRun ? nil : unlink,
            held: { [self] in held.withLock { ($0.spools, Set($0.unattached.keys)) } })
        await scrub.look(run)
        let report = run.report
        for bad in report.data?.badBlobs ?? [] {
            logger.error("a queued body is damaged", metadata: ["blob": "\(bad.sha256)", "operations": "\(bad.operations)"])
        }
        return report
    }

    /// Returns the report that `scrub` would produce; for a stopped server. Changes nothing.
    package static func scrubWhileStopped(
        _ directory: String, seal: BodySeal? = nil, now: Timestamp, progress: @escaping @Sendable (ScrubProgress) -> Void = { _ in }
    ) async -> ScrubReport {
        let run = ScrubRun("data", dryRun: true, startedAt: now, progress: progress)
        await run.attempt("open") {
            try await StoppedDatabase.read("\(directory)/data.sqlite", identity: DataSchema.identity) { database in
                guard let database else { return }
                await DataScrub(directory: directory, reader: database, seal: seal, now: now, unlink: nil, held: { ([], []) }).look(run)
            }
        }
        return run.report
    }

    /// Returns the bodies of open operations whose files are missing or have another length. No file is read.
    /// - Throws: `DataStoreError`, `FileError`.
    package func damagedBodies() async throws -> [ScrubReport.BadBlob] {
        let blobs = try await reading { db in
            try Row.fetchAll(db, sql: "SELECT sha, length FROM blob LIMIT 1000").map { row -> (String, Int64) in
                var columns = RowReader(row)
                return (Digest.hex(try columns.next(Data.self)), try columns.next())
            }
        }
        if blobs.isEmpty { return [] }
        let lacking = try await lanes.run(0) { [self] in
            blobs.compactMap { name, length -> (name: String, what: String)? in
                guard let size = FileStatus.of(blobPath(name))?.size else { return (name, "missing") }
                return SealedChunks.isSize(size, of: length) ? nil : (name, "bad")
            }
        }
        if lacking.isEmpty { return [] }
        let named = try await reading { try DataScrub.named(in: $0) }
        return lacking.compactMap { found in
            guard let open = named[found.name]?.open, !open.isEmpty else { return nil }
            return ScrubReport.BadBlob(sha256: found.name, what: found.what, operations: open)
        }
    }

    /// Returns the bodies of open operations that are missing or are not what their names say; for a stopped server. Every body is read.
    /// - Returns: nil where the outbox cannot be opened, and where there is none.
    package static func damagedBodiesWhileStopped(
        _ directory: String, seal: BodySeal? = nil, now: Timestamp
    ) async -> [ScrubReport.BadBlob]? {
        let run = ScrubRun("data", dryRun: true, startedAt: now) { _ in }
        run.note { $0.data = ScrubReport.Data() }
        let isDone = await run.attempt("open") {
            try await StoppedDatabase.read("\(directory)/data.sqlite", identity: DataSchema.identity) { database in
                guard let database else { return }
                try await DataScrub(directory: directory, reader: database, seal: seal, now: now, unlink: nil, held: { ([], []) })
                    .checkBlobs(run)
            }
        }
        return isDone ? run.report.data?.badBlobs.filter { !$0.operations.isEmpty } : nil
    }
}
