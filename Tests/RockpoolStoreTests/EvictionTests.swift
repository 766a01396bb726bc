// Eviction: one run serves all waiting writers, in order, and evicts no more than they need (docs/storage.md#ledger,
// docs/storage.md#eviction).
import Foundation
import GRDB
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolStore

@Suite struct EvictionTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// Fills the cache with bodies of one size, at least up to its soft limit.
    private func full(limit: Int64, length: Int) async throws -> CacheStore {
        let store = try openCache(scratch.cache, time, storage(cache: ByteCount(limit)))
        var n = 0
        while store.footprint.ledger.used + Int64(2 * length) < limit * 94 / 100 {
            _ = try await store.put("/\(n)", bytes(length, seed: UInt64(n + 1)), at: time.now)
            time.advance(.seconds(1))
            n += 1
        }
        #expect(try await store.usage().evictions == 0)
        return store
    }

    @Test func sixteenWhoWaitAtOnceEvictForEachOther() async throws {
        let limit: Int64 = 40_000_000
        let store = try await full(limit: limit, length: 100_000)
        let before = store.footprint.parts.files
        let wanted: Int64 = 300_000
        let writers = await withTaskGroup(of: CacheWriter?.self) { tasks in
            for _ in 0..<16 { tasks.addTask { await store.beginWrite(expectedLength: wanted, category: .assets) } }
            return await tasks.reduce(into: []) { $0.append($1) }
        }
        #expect(writers.allSatisfy { $0 != nil })
        while await store.evictToLowMark().entries > 0 {}
        let evicted = before - store.footprint.parts.files
        // The evicted bytes cover all reservations and the way down to the low mark, plus one body at most.
        let ledger = store.footprint.ledger
        #expect(evicted > 0 && ledger.used + ledger.reserved <= limit)
        #expect(ledger.used + ledger.reserved > limit * 90 / 100 - 300_000, "\(evicted) bytes evicted")
        withExtendedLifetime(writers) {}
        await store.close()
    }

    /// The largest body stays, and one byte more evicts nothing.
    @Test(arguments: [4_000_000, 40_000_000] as [Int64]) func aBodyThatCannotStayIsNotStored(limit: Int64) async throws {
        let store = try openCache(scratch.cache, time, storage(cache: ByteCount(limit)))
        _ = try await store.put("/small", bytes(1000), at: time.now)
        let largest = Int(store.largestBody(in: .critical))
        #expect(largest > Int(limit) / 2)
        for announced in [true, false] {
            let entry = try await store.put("/large", bytes(largest + 1), category: .critical, at: time.now, announced: announced)
            #expect(entry == nil)
        }
        #expect(try await store.only("/small") != nil)
        time.advance(.seconds(1))
        _ = try await store.put("/large", bytes(largest), category: .critical, at: time.now)
        while await store.evictToLowMark().entries > 0 {}
        #expect(try await store.only("/large") != nil)
        await store.close()
    }

    @Test func whatIsBeingReadIsNotEvictedAndOthersDoNotGoForIt() async throws {
        let limit: Int64 = 20_000_000
        let store = try await full(limit: limit, length: 1_500_000)
        let oldest = try #require(try await store.only("/0"))
        let second = try #require(try await store.only("/1"))
        let reading = try #require(try await store.body(of: oldest))
        let leaving = try #require(try await store.body(of: second))
        // The entry is removed, but the file stays while a reader has it open.
        _ = try await store.remove(where: .urls(["https://api.example.com/1"]))
        #expect(store.bodies.leavingBytes >= 1_500_000)
        let entries = try await store.usage().entries
        _ = await store.beginWrite(expectedLength: 4_000_000, category: .assets)
        while await store.evictToLowMark().entries > 0 {}
        #expect(try await store.only("/0") != nil)
        let evicted = try await entries - store.usage().entries
        #expect((1...4).contains(evicted))
        withExtendedLifetime((reading, leaving)) {}
        await store.close()
    }

    @Test func whoCannotHaveRoomDoesNotKeepOthersWaiting() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(20)))
        let body = bytes(2_000_000)
        _ = try await store.put("/pinned", body, at: time.now)
        #expect(try await store.pin(url: "https://api.example.com/pinned", true) == 1)
        var writers: [CacheWriter?] = []
        for _ in 0..<8 { writers.append(await store.beginWrite(expectedLength: 2_000_000, category: .assets)) }
        let missing = store.footprint.ledger.limit - store.footprint.ledger.used - store.footprint.ledger.reserved
        #expect(missing > 0 && missing < 2_000_000)
        async let large = store.beginWrite(expectedLength: 2_000_000, category: .assets)
        async let small = store.beginWrite(expectedLength: 100, category: .assets)
        let (none, some) = await (large, small)
        #expect(none == nil && some != nil)
        withExtendedLifetime(writers) {}
        await store.close()
    }

    /// Returns the URLs of the entries evicted first to free this many bytes.
    private func first(_ bytes: Int64, _ store: CacheStore) async throws -> [String] {
        try await store.queue.commit { try store.nextToGo(in: $0, goal: bytes, atMost: store.batchRows).map(\.key) }
            .compactMap { CacheKey(text: $0)?.url }
    }

    @Test(arguments: [CacheCategory.assets, .ephemeral]) func whatIsReadOftenOrIsSmallStaysLonger(
        _ category: CacheCategory
    ) async throws {
        let store = try openCache(scratch.cache, time)
        for (path, size) in [("/often", 100_000), ("/twice", 100_000), ("/large", 2_000_000)] {
            try await store.put(path, bytes(size, seed: UInt64(path.count)), category: category, at: time.now)
            time.advance(.seconds(1))
        }
        // None of them was read: they are on probation, the oldest first.
        #expect(try await first(10_000, store) == [key("/often").url])
        for (path, count) in [("/often", 20), ("/twice", 2), ("/large", 2)] {
            for _ in 0..<count { store.use(try #require(try await store.only(path))) }
            try await store.writeBackRecency()
            time.advance(.hours(1))
        }
        #expect(try await first(4_000_000, store) == ["/large", "/twice", "/often"].map { key($0).url })
        // A new version takes over what its URL was read for.
        try await store.put("/often", bytes(100_000, seed: 9), category: category, at: time.now)
        // Once its writer has given back the body.
        try await eventually("it is the last") { try await first(4_000_000, store).last == key("/often").url }
        await store.close()
    }

    /// What was read much once sinks below what is read now, once others have left.
    @Test func nothingStaysForEver() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(4)))
        try await store.put("/former", bytes(20_000, seed: 1), at: time.now)
        for _ in 0..<8 { store.use(try #require(try await store.only("/former"))) }
        var (number, isThere) = (0, true)
        while isThere, number < 20_000 {
            let path = "/n/\(number)"
            _ = try? await store.put(path, bytes(20_000, seed: UInt64(number + 10)), at: time.now)
            time.advance(.seconds(1))
            if let entry = try await store.only(path) { for _ in 0..<2 { store.use(entry) } }
            while await store.evictToLowMark().entries > 0 {}
            number += 1
            isThere = try await store.only("/former") != nil
        }
        #expect(!isThere && number > 200, "\(number)")
        await store.close()
    }

    /// A pass over many URLs evicts its own entries, however long it is; what is read again and again stays.
    @Test(arguments: [CacheCategory.important, .assets]) func aScanLeavesWhatIsReadAgainAndAgain(_ category: CacheCategory) async throws {
        let limit: Int64 = 4_000_000
        let store = try openCache(scratch.cache, time, storage(cache: ByteCount(limit)))
        let hot = (0..<30).map { "/hot/\($0)" }
        for path in hot {
            try await store.put(path, bytes(20_000, seed: 1), category: category, at: time.now)
            time.advance(.seconds(1))
            store.use(try #require(try await store.only(path)))
        }
        for number in 0..<600 {
            time.advance(.milliseconds(10))
            _ = try? await store.put("/scan/\(number)", bytes(20_000, seed: UInt64(number + 2)), category: category, at: time.now)
        }
        while await store.evictToLowMark().entries > 0 {}
        var kept = 0
        for path in hot where try await store.only(path) != nil { kept += 1 }
        #expect(kept == 30)
        #expect(try await store.usage().evictions > 300)
        // What comes back soon after its eviction skips the probation.
        let gone = try #require(try await last(of: 600) { try await store.only("/scan/\($0)") == nil })
        for path in ["/scan/\(gone)", "/new"] { try await store.put(path, bytes(20_000, seed: 9), category: category, at: time.now) }
        let waiting = try await store.queue.commit { db in
            try String.fetchAll(db, sql: "SELECT url FROM entry WHERE \(CacheSchema.isOnProbation)")
        }
        #expect(waiting.contains(key("/new").url) && !waiting.contains(key("/scan/\(gone)").url))
        await store.close()
    }

    /// Returns the last number below `count` that satisfies the condition.
    private func last(of count: Int, _ condition: (Int) async throws -> Bool) async throws -> Int? {
        for number in (0..<count).reversed() where try await condition(number) { return number }
        return nil
    }

    @Test func thePinCapHoldsForWhatGrows() async throws {
        var settings = storage(cache: .mb(20))
        settings.pinCapPercent = 10
        let store = try openCache(scratch.cache, time, settings)
        try await store.put("/a", bytes(1_000_000, seed: 1), at: time.now)
        #expect(try await store.pin(url: key("/a").url, true) == 1)
        #expect(try #require(try await store.put("/a", bytes(1_500_000, seed: 2), at: time.now)).isPinned)
        #expect(try await store.usage().pinnedBytes >= 1_500_000)
        #expect(try #require(try await store.put("/a", bytes(2_100_000, seed: 3), at: time.now)).isPinned == false)
        #expect(try await store.usage().pinnedBytes == 0)
        await store.close()
    }
}
