// A dry run predicts exactly the effect of a real run, over random contents; live, pinned and foreign files stay (docs/storage.md#cleanup).
import Foundation
import GRDB
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct CleanupExactTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private func shardPath(_ name: String, in directory: String? = nil) throws -> String {
        let directory = directory ?? String(name.prefix(2))
        try FileManager.default.createDirectory(atPath: "\(scratch.cache)/bodies/\(directory)", withIntermediateDirectories: true)
        return "\(scratch.cache)/bodies/\(directory)/\(name)"
    }

    private func plant(_ path: String) throws { try Data(bytes(5000)).write(to: URL(fileURLWithPath: path)) }

    /// Returns a store with entries of all ages, categories and sizes, some pinned, some without their file; orphans, temporary files and
    /// foreign files.
    private func filled(_ seed: UInt64) async throws -> CacheStore {
        var settings = storage(cache: .mb(20))
        settings.pinCapPercent = 50
        let store = try openCache(scratch.cache, time, settings)
        let dice = bytes(200, seed: seed).map(Int.init)
        let categories: [CacheCategory] = [.critical, .important, .assets, .assets, .ephemeral]
        for n in 0..<80 {
            let size = dice[n] % 3 == 0 ? 40_000 + dice[n] * 100 : 100 + dice[n] * 50
            let category = categories[dice[n + 80] % categories.count]
            let ttl = TimeSpan.minutes(Int64(1 + dice[n] * dice[n]))
            let entry = try await store.put("/\(n)", bytes(size, seed: UInt64(n + 1)), category: category, at: time.now, ttl: ttl)
            if dice[n] % 11 == 0 { _ = try await store.pin(url: "https://api.example.com/\(n)", true) }
            if dice[n] % 13 == 0, let entry, entry.bodyIsInFile {
                try FileManager.default.removeItem(atPath: store.bodies.path(of: entry.bodyHash))
            }
            time.advance(.hours(Int64(dice[n + 80] % 12)))
        }
        for n in 0..<5 { try plant(try shardPath(Digest.hex(bytes(32, seed: seed + UInt64(n))))) }
        try plant("\(scratch.cache)/tmp/left-over")
        return store
    }

    @Test(
        arguments: [1, 2, 3, 4],
        [CleanupOptions(), CleanupOptions(aggressive: true), CleanupOptions(category: "assets", olderThan: .hours(40))])
    func aDryRunIsExact(_ seed: UInt64, _ options: CleanupOptions) async throws {
        let store = try await filled(seed)
        var dryOptions = options
        dryOptions.dryRun = true
        let dry = await store.cleanup(dryOptions, settings: CleanupSettings(), now: time.now)
        let before = try await store.usage().entries
        let real = await store.cleanup(options, settings: CleanupSettings(), now: time.now)
        #expect(dry.removed == real.removed && dry.kept == real.kept && dry.orphans == real.orphans && dry.foreign == real.foreign)
        #expect(dry.errors.isEmpty && real.errors.isEmpty)
        // How full SQLite's pages are after scattered rows went is not known before.
        let error = abs(dry.files.cacheAfter - real.files.cacheAfter)
        let slack = max(128 * 1024, (real.files.cacheBefore - real.files.cacheAfter) / 4)
        #expect(error <= slack, "foreseen \(dry.files.cacheAfter), left \(real.files.cacheAfter) of \(real.files.cacheBefore)")
        #expect(real.orphans >= 6 && real.kept.byReason["pinned"] != nil)
        #expect(try await store.usage().entries == real.kept.entries)
        #expect(before >= real.kept.entries + real.removed.entries)
        await store.close()
    }

    @Test func foreignFilesAreCountedAndLeftAlone() async throws {
        let store = try openCache(scratch.cache, time)
        let elsewhere = "\(scratch.path)/elsewhere"
        try FileManager.default.createDirectory(atPath: elsewhere, withIntermediateDirectories: true)
        let hash = String(repeating: "ab", count: 32)
        let foreign = [
            try shardPath("notes.txt", in: "ab"), try shardPath(hash.uppercased(), in: "ab"), try shardPath(hash, in: "cd"),
            try shardPath("x", in: "lost+found"), "\(scratch.cache)/bodies/readme", "\(elsewhere)/\(String(repeating: "ef", count: 32))",
        ]
        try FileManager.default.createSymbolicLink(atPath: "\(scratch.cache)/bodies/ef", withDestinationPath: elsewhere)
        for path in foreign { try plant(path) }
        try plant(try shardPath(hash))
        for dryRun in [true, false] {
            let report = await store.cleanup(CleanupOptions(dryRun: dryRun), settings: CleanupSettings(), now: time.now)
            #expect(report.foreign == 6 && report.orphans == 1)
        }
        for path in foreign { #expect(FileManager.default.fileExists(atPath: path), "\(path)") }
        await store.close()
    }

    @Test func anOrphanThatGotItsRowMeanwhileStays() async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(50_000)
        let first = try #require(await store.put("/a", body, at: time.now))
        // The file was listed as an orphan before the row was committed.
        let removed = try await store.queue.outside { store.bodies.removeUnnamed([first.bodyHash], in: $0) }
        #expect(removed == 0)
        #expect(try await store.bytes(of: first) == body)
        await store.close()
    }

    @Test func whatWasPinnedOrRefreshedAfterTheLookStays() async throws {
        let store = try openCache(scratch.cache, time)
        for n in 0..<3 { _ = try await store.put("/\(n)", bytes(100, seed: UInt64(n)), at: time.now, ttl: .minutes(1)) }
        time.advance(.days(40))
        // A trigger of the first delete stands for another client that pins an entry between reading the page and the transaction that
        // deletes.
        try await store.queue.commit { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER meddle AFTER DELETE ON entry WHEN old.url LIKE '%/0' BEGIN
                        UPDATE entry SET pinned = 1 WHERE url LIKE '%/1'; UPDATE entry SET kept_until = 1 << 60, fresh_until = 1 << 60 WHERE url LIKE '%/2';
                    END
                    """)
        }
        let rows = try await store.database.pool.read { try EvictionCandidate.fetch(in: $0, where: "1", arguments: [], limit: 10) }
        #expect(rows.count == 3)
        let first = try await store.take(dryRun: false) { _ in [rows[0]] }
        #expect(first.count == 1)
        let condition = RowCondition("pinned = 0 AND kept_until < ?", [time.now.milliseconds])
        let gone = try await store.deeds.remove(rows, condition)
        #expect(gone.isEmpty)
        #expect(try await store.usage().entries == 2)
        await store.close()
    }

    @Test func aStepThatFailsDoesSoAlone() async throws {
        let store = try openCache(scratch.cache, time)
        _ = try await store.put("/old", bytes(100), category: .ephemeral, at: time.now)
        time.advance(.days(40))
        try plant(try shardPath(String(repeating: "ab", count: 32)))
        try await store.queue.commit {
            try $0.execute(sql: "CREATE TRIGGER stop BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'no'); END")
        }
        let report = await store.cleanup(CleanupOptions(vacuum: true), settings: CleanupSettings(), now: time.now)
        #expect(report.errors.count == 1 && report.errors.first?.hasPrefix("expired: ") == true)
        #expect(report.removed.entries == 0 && report.kept.entries == 1 && report.orphans == 1 && report.vacuum.ran)
        await store.close()
    }

    @Test func aDataStepThatFailsDoesSoAlone() async throws {
        let store = try openData(scratch.state, time)
        try plant("\(scratch.state)/blobs/tmp/left-over")
        try await store.queue.commit { db in
            try db.execute(sql: "INSERT INTO sync_log (at, seq, event) VALUES (0, 99, 'pending')")
            try db.execute(sql: "CREATE TRIGGER stop BEFORE DELETE ON sync_log BEGIN SELECT RAISE(ABORT, 'no'); END")
        }
        let report = await store.cleanup(CleanupOptions(vacuum: true), settings: CleanupSettings(), now: time.now)
        #expect(report.errors.count == 1 && report.errors.first?.hasPrefix("log: ") == true)
        #expect(report.orphans == 1 && report.vacuum.ran)
        #expect(await store.lastCleanup() == time.now)
        await store.close()
    }

    @Test func aReaderDoesNotHoldTheWriterUp() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(8)))
        let (reading, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let pool = store.database.pool
        let reader = Thread {
            try? pool.read { db in
                _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM entry")
                reading.signal()
                done.wait()
            }
        }
        reader.start()
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                reading.wait()
                continuation.resume()
            }
        }
        _ = try await store.put("/a", bytes(100), at: time.now)
        // A timeout so long that a busy machine cannot explain it.
        try await store.queue.outside { try $0.execute(sql: "PRAGMA busy_timeout = 120000") }
        let began = ContinuousClock.now
        await #expect(throws: DatabaseError.self) { try await store.queue.outside { try $0.truncateLog() } }
        #expect(ContinuousClock.now - began < .seconds(60))
        done.signal()
        await store.close()
    }

    @Test(arguments: [true, false], [CleanupOptions(), CleanupOptions(aggressive: true)])
    func aLookAtAStoppedStoreChangesNoByte(_ stopsCleanly: Bool, _ options: CleanupOptions) async throws {
        let cache = try await filled(7)
        let data = try openData(scratch.state, time)
        for id in ["a", "b"] { _ = try await data.append(write(id, lane: id)) }
        _ = try await data.lease(id: "a", now: time.now)
        try plant("\(scratch.state)/blobs/tmp/left-over")
        if stopsCleanly {
            await cache.close()
            await data.close()
            try plant("\(scratch.cache)/tmp/late")
        }
        let (cacheCopy, stateCopy) = (try scratch.copy(scratch.cache, to: "cache-2"), try scratch.copy(scratch.state, to: "state-2"))
        let before = try tree(cacheCopy) + tree(stateCopy)
        let settings = storage(cache: .mb(20))
        let dry = try await DataStore.whileStopped(stateCopy) { () -> CleanupReport in
            let cached = await CacheStore.lookWhileStopped(
                cacheCopy, settings: settings, categories: CacheCategory.builtIn, options: options, cleanup: CleanupSettings(),
                now: time.now)
            return cached.merged(
                with: await DataStore.lookWhileStopped(
                    stateCopy, settings: settings, options: options, cleanup: CleanupSettings(), now: time.now))
        }
        #expect(try tree(cacheCopy) + tree(stateCopy) == before)
        #expect(dry.errors.isEmpty)
        let (again, same) = (try openCache(cacheCopy, time, settings), try openData(stateCopy, time, settings))
        var real = await again.cleanup(options, settings: CleanupSettings(), now: time.now)
            .merged(with: same.cleanup(options, settings: CleanupSettings(), now: time.now))
        real.orphans += again.tidied + same.tidied
        #expect(dry.removed == real.removed && dry.kept == real.kept && dry.orphans == real.orphans && dry.operations == real.operations)
        await again.close()
        await same.close()
    }

    /// Returns every path with its type, permissions and content.
    private func tree(_ path: String) throws -> [String] {
        try (FileManager.default.subpaths(atPath: path) ?? []).sorted().map { name in
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
            let content = FileManager.default.contents(atPath: "\(path)/\(name)")?.hashValue ?? 0
            return
                "\(name) \(attributes[.posixPermissions] ?? 0) \(attributes[.modificationDate] ?? 0) \(attributes[.size] ?? 0) \(content)"
        }
    }
}
