// Cleanup: each step removes what it should, and a dry run reports the same numbers without removing anything (docs/storage.md#cleanup).
import Foundation
import GRDB
import NIOCore
import RockpoolCore
import Synchronization
import Testing

@testable import RockpoolStore

@Suite struct CleanupTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// Returns a store with ephemeral entries past their window, stale entries still kept, fresh, critical and pinned entries; an orphan, a
    /// temporary file and a row without its file.
    private func filled() async throws -> CacheStore {
        let store = try openCache(scratch.cache, time)
        for n in 0..<60 {
            _ = try await store.put("/old/\(n)", bytes(20_000, seed: UInt64(n + 1)), category: .ephemeral, at: time.now)
        }
        _ = try await store.put("/pinned", bytes(50_000, seed: 900), category: .ephemeral, at: time.now)
        _ = try await store.pin(url: "https://api.example.com/pinned", true)
        time.advance(.days(2))
        _ = try await store.put("/stale", bytes(70_000, seed: 901), at: time.now)
        let lost = try #require(await store.put("/lost", bytes(70_000, seed: 902), category: .critical, at: time.now))
        time.advance(.hours(2))
        _ = try await store.put("/fresh", bytes(70_000, seed: 903), at: time.now)
        _ = try await store.put("/critical", bytes(70_000, seed: 904), category: .critical, at: time.now)
        try FileManager.default.removeItem(atPath: store.bodies.path(of: lost.bodyHash))
        try Data([1]).write(to: URL(fileURLWithPath: "\(scratch.cache)/tmp/left-over"))
        let orphan = String(repeating: "cd", count: 32)
        try FileManager.default.createDirectory(atPath: "\(scratch.cache)/bodies/cd", withIntermediateDirectories: true)
        try Data(bytes(40_000)).write(to: URL(fileURLWithPath: "\(scratch.cache)/bodies/cd/\(orphan)"))
        return store
    }

    private func targets(_ store: CacheStore) async throws -> [String] {
        try await store.list(limit: 1000).map { String($0.url.dropFirst(origin.url.count)) }.filter { !$0.hasPrefix("/old") }
    }

    @Test func whoWaitsIsToldEveryStepInOrderAndWhatHasGone() async throws {
        let store = try await filled()
        let told = Mutex<[CleanupProgress]>([])
        let report = await store.cleanup(CleanupOptions(), settings: CleanupSettings(), now: time.now) { progress in
            told.withLock { $0.append(progress) }
        }
        let steps = told.withLock(\.self)
        #expect(steps.map(\.done) == steps.map(\.done).sorted())
        #expect(steps.first?.step == "cache" && steps.last?.step == "cache after" && steps.allSatisfy { $0.done < $0.of })
        #expect(steps.contains { $0.step == "expired" && $0.removed.entries > 0 } && steps.last?.removed == report.removed.total)
        await store.close()
    }

    @Test(arguments: [
        (false, ["/critical", "/fresh", "/pinned", "/stale"], 60), (true, ["/critical", "/pinned"], 62),
    ])
    func aDryRunSaysWhatTheRealRunDoes(_ aggressive: Bool, left: [String], removed: Int) async throws {
        let store = try await filled()
        let files = Scratch.files(under: scratch.cache).count
        let settings = CleanupSettings()
        let dry = await store.cleanup(CleanupOptions(aggressive: aggressive, dryRun: true), settings: settings, now: time.now)
        #expect(Scratch.files(under: scratch.cache).count == files)
        #expect(try await store.usage().entries == 65)
        let real = await store.cleanup(CleanupOptions(aggressive: aggressive), settings: settings, now: time.now)
        #expect(dry.removed == real.removed)
        #expect(dry.orphans == real.orphans)
        #expect(dry.vacuum.why == real.vacuum.why && !dry.vacuum.ran)
        #expect(real.removed.entries == removed)
        #expect(real.removed.byReason.values.reduce(0) { $0 + $1.entries } == removed)
        #expect(real.removed.byCategory["ephemeral"]?.entries == 60)
        #expect(real.errors.isEmpty)
        #expect(real.files.cacheAfter < real.files.cacheBefore)
        #expect(try await targets(store) == left)
        let again = await store.cleanup(CleanupOptions(aggressive: aggressive), settings: settings, now: time.now)
        #expect(again.removed.entries == 0 && again.orphans == 0)
        await store.close()
    }

    @Test(arguments: [true, false]) func whatIsKeptForOfflineUseStays(_ aggressive: Bool) async throws {
        let store = try openCache(scratch.cache, time)
        for n in 0..<3 { _ = try await store.put("/c\(n)", bytes(100, seed: UInt64(n + 1)), category: .critical, at: time.now) }
        _ = try await store.put("/i", bytes(100, seed: 9), category: .important, at: time.now)
        time.advance(.days(20))
        let report = await store.cleanup(CleanupOptions(aggressive: aggressive), settings: CleanupSettings(), now: time.now)
        #expect(report.removed.byCategory["critical"] == nil && report.removed.entries == 1)
        #expect(try await store.usage().entries == 3)
        await store.close()
    }

    @Test func unusedAndStaleGoesAfterItsTime() async throws {
        let store = try openCache(scratch.cache, time)
        _ = try await store.put("/used", bytes(100), at: time.now)
        _ = try await store.put("/unused", bytes(100), at: time.now)
        time.advance(.days(8))
        let used = try #require(try await store.lookup(key("/used")).first)
        store.use(used)
        let report = await store.cleanup(CleanupOptions(), settings: CleanupSettings(), now: time.now)
        #expect(report.removed.byReason["stale, offline copy"]?.entries == 1)
        #expect(try await targets(store) == ["/used"])
        await store.close()
    }

    /// What one lives on while an upstream is away, and what waiting writes name, goes only where that is asked for.
    @Test func offlineCopiesAreHeld() async throws {
        let store = try openCache(scratch.cache, time)
        for target in ["/a", "/b"] { _ = try await store.put(target, bytes(100), at: time.now) }
        _ = try await store.put("/pictures", bytes(100), category: .assets, at: time.now)
        time.advance(.days(20))
        var options = CleanupOptions(aggressive: true, lists: true)
        let named = CleanupHold(urls: ["https://api.example.com/a"])
        let away = CleanupHold(origins: ["https://api.example.com"])
        let all = await store.cleanup(options, settings: CleanupSettings(), hold: away, now: time.now)
        #expect(all.removed.entries == 0 && all.list == [] && all.held["https://api.example.com"]?.entries == 3)
        #expect(all.merged(with: all).advice.contains { $0.contains("offline copies of https://api.example.com") && $0.contains("--yes") })
        let normal = await store.cleanup(CleanupOptions(), settings: CleanupSettings(), hold: away, now: time.now)
        #expect(normal.removed.entries == 0)
        let one = await store.cleanup(options, settings: CleanupSettings(), hold: named, now: time.now)
        #expect(one.removed.entries == 2 && one.held["https://api.example.com"]?.entries == 1)
        #expect(one.list?.map(\.reason).sorted() == ["assets", "stale, offline copy"] || one.list?.count == 2)
        #expect(try await targets(store) == ["/a"])
        let left = try await store.reclaimable(now: time.now)
        #expect(left.keys.sorted() == ["assets"] && left["assets"] ?? 0 > 100, "\(left)")
        options.includesHeld = true
        let rest = await store.cleanup(options, settings: CleanupSettings(), hold: away, now: time.now)
        #expect(rest.removed.entries == 1 && rest.held.isEmpty)
        #expect(try await targets(store) == [])
        await store.close()
    }

    @Test func vacuumGivesPagesBackAndCountsThemAfterwards() async throws {
        let store = try openCache(scratch.cache, time)
        for n in 0..<200 { _ = try await store.put("/\(n)", bytes(20_000, seed: UInt64(n + 1)), category: .critical, at: time.now) }
        _ = try await store.remove(where: .prefix("https://api.example.com/1"))
        let report = await store.cleanup(CleanupOptions(), settings: CleanupSettings(), now: time.now)
        #expect(report.vacuum.ran && report.vacuum.why == "more than 25% free")
        #expect(report.vacuum.pagesAfter < report.vacuum.pagesBefore / 2 + 60)
        let pages = try await store.queue.outside { try Int.fetchOne($0, sql: "PRAGMA page_count") }
        #expect(pages == report.vacuum.pagesAfter)
        let size = try FileManager.default.attributesOfItem(atPath: "\(scratch.cache)/cache.sqlite")[.size] as? Int
        #expect(size == report.vacuum.pagesAfter * 8192)
        #expect(Scratch.allocated("\(scratch.cache)/cache.sqlite-wal") == 0)
        await store.close()
    }

    @Test func aVacuumWithoutRoomForItsCopyGoesInSteps() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(10)))
        for n in 0..<230 { _ = try await store.put("/\(n)", bytes(20_000, seed: UInt64(n + 1)), category: .critical, at: time.now) }
        _ = try await store.remove(where: .prefix("https://api.example.com/2"))
        let report = await store.cleanup(CleanupOptions(vacuum: true), settings: CleanupSettings(), now: time.now)
        #expect(!report.vacuum.ran && report.vacuum.why == "due, but no room for the copy: in steps")
        #expect(report.vacuum.pagesAfter < report.vacuum.pagesBefore)
        await store.close()
    }

    @Test func theReportIsTheDocumentedJSON() async throws {
        let options = CleanupOptions(aggressive: true, dryRun: true)
        var one = CleanupReport(options, startedAt: Timestamp(seconds: 0))
        one.removed.byCategory["assets"] = RemovalCount(entries: 1, bytes: 2)
        one.vacuum.why = "a"
        var two = one
        two.vacuum.why = "b"
        let both = one.merged(with: two)
        #expect(both.removed.byCategory["assets"] == RemovalCount(entries: 2, bytes: 4))
        #expect(both.vacuum.why == "cache: a; data: b")
        let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(both)) as? [String: Any]
        #expect(
            Set(object?.keys.map { $0 } ?? []) == [
                "dryRun", "aggressive", "startedAt", "seconds", "removed", "held", "kept", "operations", "orphans", "foreign", "files",
                "vacuum",
                "notes", "errors", "advice",
            ])
        #expect((object?["startedAt"] as? String)?.hasPrefix("1970-01-01T00:00:00") == true)
        let parts = ["removed", "operations", "files", "vacuum"].map { name in
            (object?[name] as? [String: Any])?.keys.sorted() ?? []
        }
        #expect(
            parts == [
                ["byCategory", "byReason", "bytes", "entries"], ["kept", "purged", "waiting", "warned"],
                ["cacheAfter", "cacheBefore", "dataAfter", "dataBefore"], ["freePages", "pagesAfter", "pagesBefore", "ran", "why"],
            ])
    }

    @Test func dataCleanupPurgesWhatEndedLongAgoAndNeverThePending() async throws {
        let store = try openData(scratch.state, time)
        let writer = try await store.blobWriter(expectedLength: 1_500_000)
        try await writer.append(ByteBuffer(bytes: bytes(1_500_000)))
        let blob = try await writer.finish()
        _ = try await store.append(write("delivered", body: blob))
        for (id, lane) in [("dead", "a"), ("blocking", "b"), ("waiting", "b"), ("pending", "c")] {
            _ = try await store.append(write(id, lane: lane))
        }
        for (id, state) in [("delivered", OperationState.delivered), ("dead", .dead), ("blocking", .dead)] {
            _ = try await store.lease(id: id, now: time.now)
            _ = try await store.finish(
                id: id, disposition: Disposition(state: state), result: nil, attempt: AttemptRecord(sent: .yes), now: time.now)
        }
        try Data([1]).write(to: URL(fileURLWithPath: "\(scratch.state)/blobs/tmp/left-over"))
        let unattached = try await store.blobWriter(expectedLength: nil)
        try await unattached.append(ByteBuffer(bytes: bytes(1000)))
        let held = try await unattached.finish()
        time.advance(.days(31))
        let dry = await store.cleanup(CleanupOptions(dryRun: true), settings: CleanupSettings(), now: time.now)
        #expect(try await store.counts() == [.delivered: 1, .dead: 2, .pending: 2])
        let real = await store.cleanup(CleanupOptions(), settings: CleanupSettings(), now: time.now)
        #expect(dry.operations == real.operations && dry.orphans == real.orphans)
        #expect(real.operations.purged == 2 && real.operations.kept == 3 && real.orphans == 1)
        #expect(try await store.counts() == [.dead: 1, .pending: 2])
        #expect(try await store.deliveredTotal() == 1)
        #expect(Set(try await store.log().compactMap(\.operation)) == ["blocking", "waiting", "pending"])
        #expect(Scratch.files(under: "\(scratch.state)/blobs").count == 1, "only the blob not yet attached to an operation is left")
        store.discard(held)
        let last = await store.cleanup(CleanupOptions(), settings: CleanupSettings(), now: time.now)
        #expect(last.orphans <= 1, "the discarded blob may have been deleted already")
        #expect(store.usage().blobBytes == 0)
        await store.close()
    }
}
