// The names of stored entries in memory (docs/storage.md#what-is-stored-where): never "not stored" for what is.
import Foundation
import RockpoolCore
import Synchronization
import Testing

@testable import RockpoolStore

@Suite struct StoredKeysTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    @Test func whatIsStoredIsFoundAndWhatIsNotAsksNoDisk() async throws {
        var store = try openCache(scratch.cache, time)
        await store.keyReading.withLock(\.self)?.value
        try await store.put("/a?q=1", bytes(100), at: time.now)
        #expect(store.keys.mayHold(EntryRow.keyHash(key("/a?q=1"))) && !store.keys.mayHold(EntryRow.keyHash(key("/b"))))
        #expect(
            store.keys.mayHold(path: key("/a").url) && store.keys.mayHold(path: key("/a?x").url) && !store.keys.mayHold(path: key("/b").url)
        )
        #expect(try await store.only("/a?q=1") != nil)
        #expect(try await store.invalidate(urls: [key("/a?q=1").url, key("/b").url]) == 1)
        await store.close()
        store = try openCache(scratch.cache, time)
        #expect(try await store.only("/a?q=1") != nil, "also before the names are read")
        await store.keyReading.withLock(\.self)?.value
        #expect(try await store.only("/a?q=1") != nil && !store.keys.mayHold(EntryRow.keyHash(key("/b"))))
        await store.close()
    }

    /// Stores, invalidations and readings of the names at once: no valid entry is older than an invalidation of its URL.
    @Test func nothingSlipsThroughWhileTheNamesAreRead() async throws {
        let store = try openCache(scratch.cache, time)
        let rounds = 250
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    for round in 0..<rounds {
                        let path = "/\(number)-\(round)"
                        let asked = store.ticks.next()
                        async let invalidated = store.invalidate(urls: [key(path).url])
                        let stored = try await store.put(path, bytes(50, seed: UInt64(round + 1)), at: time.now, asked: asked)
                        _ = try await invalidated
                        #expect(stored != nil)
                        let found = try #require(try await store.only(path))
                        #expect(found.response.isInvalidated, "\(path)")
                    }
                }
            }
            group.addTask {
                for _ in 0..<rounds { try await store.keys.read(from: store.database, by: store.queue) }
            }
            try await group.waitForAll()
        }
        await store.close()
    }

    /// Many names do not drive out what was noted a moment ago, and a name that is noted again is as new as its last note.
    @Test func invalidationsAreRemembered() {
        let invalidations = Invalidations()
        #expect(invalidations.isEmpty)
        let (early, late) = (Tick(number: 1), Tick(number: 2))
        for name in ["kept", "again"] { invalidations.note([.path(name)], at: early) }
        invalidations.note((0..<4_090).map { .url("\($0)") }, at: early)
        invalidations.note([.path("again")], at: late)
        invalidations.note((5_000..<9_000).map { .url("\($0)") }, at: early)
        #expect(invalidations.ownWrite(to: "kept", since: .first) == early)
        #expect(invalidations.ownWrite(to: "again", since: early) == late)
        #expect(invalidations.happened(toAny: [.url("0"), .path("again")], since: early))
        #expect(!invalidations.happened(toAny: [.url("0"), .url("none")], since: early))
    }
}
