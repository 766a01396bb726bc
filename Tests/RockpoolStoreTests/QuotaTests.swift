// The size limit, measured like `du`: never exceeded, at the limit and one past it (docs/storage.md#ledger, docs/storage.md#eviction).
import Foundation
import GRDB
import NIOCore
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@testable import RockpoolStore

@Suite struct QuotaTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    @Test(arguments: [(8_000_000, 300_000), (8_000_000, 20_000), (20_000_000, 1_500_000)])
    func storingWithoutEndNeverPassesTheLimit(_ limit: Int64, length: Int) async throws {
        let store = try openCache(scratch.cache, time, storage(cache: ByteCount(limit)))
        var peak: Int64 = 0
        let count = Int(limit) * 3 / length
        for n in 0..<count {
            _ = try await store.put("/\(n)", bytes(length, seed: UInt64(n + 1)), at: time.now)
            time.advance(.seconds(1))
            if n % 8 == 0 { peak = max(peak, Scratch.allocated(scratch.cache)) }
        }
        peak = max(peak, Scratch.allocated(scratch.cache))
        #expect(peak <= limit)
        #expect(peak > limit / 2)
        let usage = try await store.usage()
        #expect(usage.usedBytes <= limit && usage.evictions > 0)
        #expect(usage.reservedBytes == 0)
        // The newest entry is stored, the oldest is evicted.
        #expect(try await !store.lookup(key("/\(count - 1)")).isEmpty)
        #expect(try await store.lookup(key("/0")).isEmpty)
        await store.close()
    }

    @Test func manyWritersAtOnceStayWithinTheLimit() async throws {
        let limit: Int64 = 10_000_000
        let store = try openCache(scratch.cache, time, storage(cache: ByteCount(limit)))
        let moment = time.now
        let peaks = try await withThrowingTaskGroup(of: Int64.self) { tasks in
            for writer in 0..<8 {
                tasks.addTask {
                    var peak: Int64 = 0
                    for n in 0..<12 {
                        let body = bytes(400_000, seed: UInt64(writer * 100 + n + 1))
                        try await store.put("/\(writer)/\(n)", body, at: moment, announced: n % 2 == 0)
                        peak = max(peak, Scratch.allocated(store.directory))
                    }
                    return peak
                }
            }
            return try await tasks.reduce(0) { max($0, $1) }
        }
        #expect(peaks <= limit)
        #expect(try await store.usage().entries > 5)
        await store.close()
    }

    @Test func theLedgerAgreesWithTheDisk() async throws {
        let store = try openCache(scratch.cache, time)
        for n in 0..<40 { _ = try await store.put("/\(n)", bytes(n % 2 == 0 ? 1000 : 90_000, seed: UInt64(n + 1)), at: time.now) }
        _ = try await store.remove(where: .prefix("https://api.example.com/1"))
        let parts = store.footprint.parts
        let bodies = Scratch.files(under: "\(scratch.cache)/bodies").reduce(0) { $0 + Scratch.allocated($1) }
        #expect(parts.files == bodies)
        let rest =
            Scratch.allocated(scratch.cache) - bodies
            - ["", "-wal", "-shm"].reduce(0) { $0 + Scratch.allocated("\(scratch.cache)/cache.sqlite\($1)") }
        #expect(parts.fixed == rest)
        #expect(parts.total >= Scratch.allocated(scratch.cache))
        await store.close()
    }

    @Test(arguments: [(64_000_000, true), (64_000_001, false)])
    func aCategoryTakesBodiesUpToItsLargest(_ length: Int64, fits: Bool) async throws {
        let store = try openCache(scratch.cache, time)
        #expect((await store.beginWrite(expectedLength: length, category: .assets) != nil) == fits)
        await store.close()
    }

    @Test func belowMinFreeNothingIsStored() async throws {
        let store = try openCache(scratch.cache, time, storage(minFree: ByteCount(.max)))
        #expect(await store.beginWrite(expectedLength: 10, category: .assets) == nil)
        await store.close()
    }

    @Test func anUnannouncedBodyThatOutgrowsTheCacheEndsItsWriter() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(8)))
        #expect(try await store.put("/a", bytes(9_000_000), at: time.now, announced: false) == nil)
        try await eventually("the file of the body is removed") { Scratch.files(under: "\(scratch.cache)/tmp").isEmpty }
        try await eventually("its space is released") { try await store.usage().reservedBytes == 0 }
        await store.close()
    }

    @Test func theLeastRecentlyUsedOfTheLightestLeavesFirst() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(20)))
        for n in 0..<20 {
            _ = try await store.put("/critical/\(n)", bytes(300_000, seed: UInt64(n + 1)), category: .critical, at: time.now)
            _ = try await store.put("/assets/\(n)", bytes(300_000, seed: UInt64(n + 100)), at: time.now)
            time.advance(.seconds(1))
        }
        let oldest = try #require(try await store.lookup(key("/assets/0")).first)
        store.use(oldest)
        let pinned = try await store.pin(url: "https://api.example.com/assets/1", true)
        #expect(pinned == 1)
        for n in 20..<50 {
            _ = try await store.put("/assets/\(n)", bytes(300_000, seed: UInt64(n + 100)), at: time.now)
            time.advance(.seconds(1))
        }
        func isThere(_ target: String) async throws -> Bool { try await !store.lookup(key(target)).isEmpty }
        #expect(try await isThere("/assets/0"), "the most recently used entry is kept")
        #expect(try await isThere("/assets/1"), "pinned")
        #expect(try await !isThere("/assets/2"))
        for n in 0..<20 { #expect(try await isThere("/critical/\(n)"), "\(n): within its guarantee") }
        await store.close()
    }

    @Test func recencyIsWrittenBackInPortionsThatTheLogCanHold() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(8)))
        let entry = try #require(await store.put("/a", [1], at: time.now))
        time.advance(.seconds(5))
        store.use(entry)
        // Ids of removed rows are skipped.
        store.recency.withLock { recency in for id in 1000..<4000 as Range<Int64> { recency[id] = CacheStore.Uses(at: 1, count: 1) } }
        let turns = Mutex(0)
        let observer = TurnCounter { turns.withLock { $0 += 1 } }
        store.database.pool.add(transactionObserver: observer, extent: .observerLifetime)
        try await store.writeBackRecency()
        let (commits, left) = (turns.withLock { $0 }, store.recency.withLock(\.count))
        #expect(commits == (3001 + store.batchRows - 1) / store.batchRows)
        #expect(left == 0)
        #expect(try await store.list().first?.lastUsedAt == time.now)
        await store.close()
    }

    @Test(arguments: [(1_000_000, 32_768, 4), (8_000_000, 32_768, 4), (20_000_000, 78_125, 9), (500_000_000, 262_144, 14)])
    func whatAWriterAsksForBeforehandGrowsWithTheCache(_ limit: Int64, step: Int64, splits: Int64) async throws {
        let store = try openCache(scratch.cache, time, storage(cache: ByteCount(limit)))
        #expect(store.growthStep == step)
        #expect(store.rowCost(0) == (2 + splits) * StoreDatabase.frameSize)
        await store.close()
    }

    @Test func aPinPastItsCapIsRefused() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(20)))
        for n in 0..<2 { _ = try await store.put("/\(n)", bytes(3_000_000, seed: UInt64(n + 1)), at: time.now) }
        #expect(try await store.pin(url: "https://api.example.com/0", true) == 1)
        #expect(try await store.pin(url: "https://api.example.com/1", true) == nil)
        #expect(try await store.pin(url: "https://api.example.com/0", false) == 1)
        #expect(try await store.pin(url: "https://api.example.com/1", true) == 1)
        await store.close()
    }

    @Test func aFullOutboxRefusesAndKeepsWhatItHas() async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(8)))
        var taken = 0
        await #expect(throws: DataStoreError.full) {
            for n in 0..<200 {
                _ = try await store.append(write("\(n)", body: .inline(bytes(100_000))))
                taken += 1
            }
        }
        #expect(taken > 20)
        #expect(Scratch.allocated(scratch.state) <= 8_000_000)
        #expect(try await store.counts() == [.pending: taken])
        // Outcomes can still be recorded.
        let leased = try await store.lease(id: "0", now: time.now)
        #expect(leased?.state == .inflight)
        #expect(Scratch.allocated("\(scratch.state)/reserve") >= 800_000)
        await store.close()
    }

    /// The reserve that is still to be made again counts against the limit: that refuses then, not the disk, which has room.
    @Test func aLimitThatOwesTheReserveIsNoFullDisk() async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(8)))
        await #expect(throws: DataStoreError.full) {
            for n in 0..<200 { _ = try await store.append(write("\(n)", body: .inline(bytes(100_000)))) }
        }
        #expect(store.reserve.giveUp())
        await #expect(throws: DataStoreError.full) { try await store.append(write("one more", body: .inline(bytes(100_000)))) }
        #expect(store.trouble == nil)
        await store.close()
    }

    /// Bodies of delivered operations are dropped in favour of waiting ones; the rows stay, so that a repeated client key is recognised.
    @Test(arguments: [100_000, 1_500_000]) func whatWasDeliveredMakesRoom(_ length: Int) async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(8)))
        func fill(_ round: Int) async throws -> Int {
            for n in 0..<200 {
                do {
                    var body = OperationBody.inline(bytes(length, seed: UInt64(round * 1000 + n)))
                    if length > 1_000_000 {
                        let writer = try await store.blobWriter(expectedLength: Int64(length))
                        try await writer.append(ByteBuffer(bytes: bytes(length, seed: UInt64(round * 1000 + n))))
                        body = try await writer.finish()
                    }
                    _ = try await store.append(write("\(round)-\(n)", body: body))
                } catch DataStoreError.full { return n }
            }
            return 200
        }
        let first = try await fill(1)
        #expect(first >= 2 && first < 200)
        for n in 0..<first {
            _ = try await store.lease(id: "1-\(n)", now: time.now)
            let result = OperationResult(head: ResponseHead(status: 204), body: [])
            _ = try await store.finish(
                id: "1-\(n)", disposition: Disposition(state: .delivered, countsAsAnswered: true), result: result,
                attempt: AttemptRecord(status: 204, sent: .yes), now: time.now)
        }
        #expect(try await fill(2) >= first - 1)
        #expect(Scratch.allocated(scratch.state) <= 8_000_000)
        #expect(try await store.counts()[.delivered] == first)
        #expect(try await store.operation(id: "1-0")?.state == .delivered)
        await store.close()
    }

    @Test(arguments: [(true, DataStoreError.diskFull), (false, .unavailable("\(TransactionLost())"))])
    func whoSharedAGroupWithAFullDiskHearsThatItIsFull(_ isFull: Bool, _ said: DataStoreError) async throws {
        let store = try openData(scratch.state, time)
        await #expect(throws: said) { try await store.translated { throw TransactionLost(isFull: isFull) } }
        await store.close()
    }

    @Test func aLimitLoweredWhileNothingRanHoldsFromTheStart() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(20)))
        for n in 0..<40 { _ = try await store.put("/\(n)", bytes(300_000, seed: UInt64(n + 1)), at: time.now) }
        await store.close()
        let again = try openCache(scratch.cache, time, storage(cache: .mb(8)))
        #expect(Scratch.allocated(scratch.cache) > 8_000_000)
        let evicted = await again.evictToLowMark()
        let left = try await again.usage().entries
        #expect(evicted.entries > 0 && left > 5 && evicted.entries + left == 40)
        #expect(Scratch.allocated(scratch.cache) <= 8_000_000)
        await again.close()
    }

    @Test func memoryIsBoundedAndTheLeastRecentlyUsedLeaves() async throws {
        let store = try openCache(scratch.cache, time, storage(memory: .kib(256)))
        for n in 0..<20 { _ = try await store.put("/\(n)", bytes(20_000, seed: UInt64(n + 1)), at: time.now) }
        for n in 0..<20 {
            for wanted in [n, 0] {
                guard let entry = try await store.lookup(key("/\(wanted)")).first else { continue }
                _ = try await store.body(of: entry)
            }
            #expect(store.memory.bytes <= 262_144)
        }
        #expect(store.lookupInMemory(key("/0")) != nil, "an entry in constant use is kept")
        #expect(store.lookupInMemory(key("/19")) != nil)
        #expect(store.lookupInMemory(key("/1")) == nil)
        await store.close()
    }
}
