// Limits of single upstreams: what one of them stores or queues takes no space from the others (docs/storage.md#limits-and-shares).
import Foundation
import GRDB
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct UpstreamLimitTests {
    let scratch: Scratch
    let time = ManualTime()
    let other = OriginAddress(scheme: .https, host: "other.example")

    init() throws { scratch = try Scratch() }

    private func put(_ count: Int, from first: Int = 0, into store: CacheStore, length: Int = 40_000) async throws {
        for n in first..<first + count {
            _ = try await store.put("/\(n)", bytes(length, seed: UInt64(n + 1)), at: time.now)
            time.advance(.seconds(1))
        }
    }

    private func held(_ store: CacheStore, _ address: OriginAddress? = nil) async throws -> Int64 {
        let url = (address ?? origin).url
        return try await store.database.pool.read {
            try Int64.fetchOne($0, sql: "SELECT coalesce(sum(bytes), 0) FROM entry WHERE origin = ?", arguments: [url]) ?? 0
        }
    }

    @Test func theLeastRecentlyUsedEntriesOfTheUpstreamLeave() async throws {
        let store = try openCache(scratch.cache, time)
        try await store.setQuotas { [origin: .mb(1)] }
        try await put(10, into: store)
        store.use(try #require(try await store.only("/0")))
        time.advance(.seconds(1))
        for n in 10..<60 {
            try await put(1, from: n, into: store)
            #expect(try await held(store) <= 1_000_000)
        }
        #expect(try await held(store) > 850_000)
        #expect(try await store.only("/59") != nil)
        #expect(try await store.only("/1") == nil)
        #expect(try await store.usage().evictions > 0)
        #expect(try await store.bytesUnderQuota(of: origin) == held(store))
        #expect(try await store.bytesUnderQuota(of: other) == nil)
        await store.close()
    }

    @Test func anEntryThatWasReadOutlivesThoseThatWereNot() async throws {
        let store = try openCache(scratch.cache, time)
        try await store.setQuotas { [origin: .mb(1)] }
        for n in 0..<60 {
            try await put(1, from: n, into: store)
            store.use(try #require(try await store.only("/0")))
        }
        #expect(try await store.only("/0") != nil)
        #expect(try await store.only("/1") == nil)
        await store.close()
    }

    @Test func aBodyLargerThanTheLimitIsNotStoredAndEvictsNothing() async throws {
        let store = try openCache(scratch.cache, time)
        try await store.setQuotas { [origin: .mb(1)] }
        try await put(5, into: store)
        #expect(try await store.put("/large", bytes(1_000_001), at: time.now) == nil)
        #expect(try await store.put("/unannounced", bytes(1_000_001), at: time.now, announced: false) == nil)
        #expect(store.largestBody(in: .assets, of: origin.url + "/large") == 1_000_000)
        #expect(try await store.usage().entries == 5)
        await store.close()
    }

    @Test func pinnedEntriesStayAndOtherUpstreamsAreNotTouched() async throws {
        let store = try openCache(scratch.cache, time)
        try await put(30, into: store)
        _ = try await store.pin(url: origin.url + "/0", true)
        let before = try await held(store)
        #expect(before > 1_200_000)
        try await store.setQuotas { [other: .mb(1)] }
        #expect(try await held(store) == before)
        try await store.setQuotas { [origin: .mb(1)] }
        #expect(try await held(store) <= 1_000_000)
        #expect(try await store.only("/0") != nil)
        await store.close()
    }

    @Test func aLimitAppliesAfterARestartAndEndsWhenItIsTaken() async throws {
        let store = try openCache(scratch.cache, time)
        try await store.setQuotas { [origin: .mb(1)] }
        try await put(60, into: store)
        await store.close()
        let again = try openCache(scratch.cache, time)
        try await again.setQuotas { [origin: ByteCount(500_000)] }
        #expect(try await held(again) <= 500_000)
        try await again.setQuotas { [:] }
        try await put(60, from: 100, into: again)
        #expect(try await held(again) > 2_400_000)
        let index = try await again.database.pool.read {
            try String.fetchOne($0, sql: "SELECT name FROM sqlite_schema WHERE name = 'entry_origin'")
        }
        #expect(index == nil)
        await again.close()
    }

    @Test func anUpstreamsWritesAreRefusedAtItsLimitOnly() async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(8)))
        let limited = { (id: String, length: Int, upstream: String) in
            var new = write(id, body: .inline(bytes(length)), lane: "lane \(id)")
            (new.share, new.upstream, new.upstreamLimit) = (.nobody, upstream, ByteCount(100_000))
            return new
        }
        _ = try await store.append(limited("0", 1, "notes"))
        let each = try await store.openBytes(of: "notes") - 1
        let rest = 100_000 - Int(each) * 2 - 1
        await #expect(throws: DataStoreError.upstreamFull(name: "notes")) { try await store.append(limited("1", rest + 1, "notes")) }
        _ = try await store.append(limited("1", rest, "notes"))
        #expect(try await store.openBytes(of: "notes") == 100_000)
        await #expect(throws: DataStoreError.upstreamFull(name: "notes")) { try await store.append(limited("2", 1, "notes")) }
        _ = try await store.append(limited("2", 50_000, "tasks"))
        // What has ended counts no more; a restart counts anew.
        _ = try await store.lease(id: "1", now: time.now)
        _ = try await store.finish(
            id: "1", disposition: Disposition(state: .delivered), result: nil, attempt: AttemptRecord(status: 200, sent: .yes),
            now: time.now)
        #expect(try await store.openBytes(of: "notes") == each + 1)
        await store.close()
        let again = try openData(scratch.state, time, storage(data: .mb(8)))
        #expect(try await again.openBytes(of: "notes") == each + 1)
        #expect(try await again.openBytes(of: "tasks") > 50_000)
        await again.close()
    }
}
