// Cache groups: stored with their entry, invalidated within their origin, removed by name (RFC 9875).
import GRDB
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct CacheGroupTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private func groupRows(_ store: CacheStore) async throws -> Int? {
        try await store.database.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM entry_group") }
    }

    private func invalidated(_ store: CacheStore, _ targets: [String]) async throws -> [String] {
        var found: [String] = []
        for target in targets where try await store.lookup(key(target)).contains(where: \.response.isInvalidated) { found.append(target) }
        return found
    }

    @Test(arguments: [(["a"], ["/1", "/2"]), (["b"], ["/2", "/3"]), (["a", "b"], ["/1", "/2", "/3"]), (["A"], []), ([], [])])
    func anInvalidationMarksEveryEntryOfTheGroup(_ groups: [String], marked: [String]) async throws {
        let store = try openCache(scratch.cache, time)
        for (target, groups) in [("/1", ["a"]), ("/2", ["a", "b", "a"]), ("/3", ["b"]), ("/4", [])] {
            try await store.put(target, [1], at: time.now, groups: groups)
            _ = try await store.lookup(key(target))
        }
        let elsewhere = OriginAddress(scheme: .http, host: "api.example.com")
        #expect(try await store.invalidate(groups: groups, origin: elsewhere) == 0)
        #expect(try await invalidated(store, ["/1", "/2", "/3", "/4"]) == [])
        _ = try await store.invalidate(groups: groups, origin: origin)
        #expect(try await invalidated(store, ["/1", "/2", "/3", "/4"]) == marked)
        await store.close()
    }

    /// Keys hold URLs as their clients have spelled them; a write to one spelling is a write to all (RFC 3986 §6.2.2).
    @Test(arguments: ["/a~b", "/a%7Eb", "/a%7eb", "/%61~b"]) func writeToOneSpellingInvalidatesAll(written: String) async throws {
        let spellings = ["/a~b", "/a%7Eb", "/a%7eb"]
        let others = ["/a%2Fb", "/a/b", "/A~b"]
        for isOwn in [false, true] {
            let store = try openCache(scratch.cache, time)
            for target in spellings + others { try await store.put(target, [1], at: time.now) }
            let sent = store.ticks.next()
            if isOwn {
                try await store.markOwnWrite(
                    urls: [origin.url + written], partitions: StoragePartition.readable(by: nil), at: store.ticks.next())
            } else {
                #expect(try await store.invalidate(urls: [origin.url + written]) == 3)
            }
            #expect(try await invalidated(store, spellings + others) == spellings)
            // A response to a request that was under way.
            #expect(spellings.allSatisfy { store.wasInvalidated(key($0), groups: [], since: sent) })
            #expect(!others.contains { store.wasInvalidated(key($0), groups: [], since: sent) })
            try await store.remove(keys: (spellings + others).map { key($0) })
            await store.close()
        }
    }

    /// The quick check of SQLite 3.40 takes the table of groups for damaged.
    @Test(arguments: [false, true]) func aCacheWithGroupsIsSound(byTable: Bool) async throws {
        let store = try openCache(scratch.cache, time)
        try await store.put("/1", [1], at: time.now, groups: ["a", "b"])
        #expect(try await PageCheck.problems(store.database.pool, byTable: byTable) == [])
        await store.close()
    }

    @Test func aLargeGroupIsMarkedInBatchesToItsEnd() async throws {
        let store = try openCache(scratch.cache, time, storage(cache: .mb(8)))
        let count = store.batchRows * 2
        for n in 0..<count { try await store.put("/\(n)", [1], at: time.now, groups: ["a"]) }
        #expect(try await store.invalidate(groups: ["a"], origin: origin) == count)
        #expect(try await invalidated(store, (0..<count).map { "/\($0)" }).count == count)
        await store.close()
    }

    @Test func whatWasUnderWayWhenItsGroupWasInvalidatedIsNotFresh() async throws {
        let store = try openCache(scratch.cache, time)
        let sent = store.ticks.next()
        _ = try await store.invalidate(groups: ["a"], origin: origin)
        try await store.put("/1", [1], at: time.now, asked: sent, groups: ["a"])
        try await store.put("/2", [1], at: time.now, asked: sent, groups: ["b"])
        try await store.put("/3", [1], at: time.now, groups: ["a"])
        #expect(try await invalidated(store, ["/1", "/2", "/3"]) == ["/1"])
        await store.close()
    }

    @Test(arguments: [["a"], nil, ["b"]])
    func aValidationThatWasUnderWayDoesNotBringTheOldStateBack(_ groups: [String]?) async throws {
        let store = try openCache(scratch.cache, time)
        var entry = try #require(await store.put("/1", [1], at: time.now, groups: ["a"]))
        entry.response.asked = store.ticks.next()
        _ = try await store.invalidate(groups: ["a"], origin: origin)
        try await store.freshen(entry, as: entry.response, groups: groups)
        #expect(try await store.only("/1")?.response.isInvalidated == (groups != ["b"]))
        entry.response.asked = store.ticks.next()
        try await store.freshen(entry, as: entry.response, groups: groups)
        #expect(try await store.only("/1")?.response.isInvalidated == false)
        entry.response.asked = store.ticks.next()
        _ = try await store.invalidate(urls: [origin.url + "/1"])
        try await store.freshen(entry, as: entry.response, groups: groups)
        #expect(try await store.only("/1")?.response.isInvalidated == true)
        await store.close()
    }

    @Test func freshenedEntriesChangeTheirGroupsWhenToldSo() async throws {
        let store = try openCache(scratch.cache, time)
        let entry = try #require(await store.put("/1", [1], at: time.now, groups: ["a"]))
        try await store.freshen(entry, as: entry.response)
        #expect(try await store.remove(where: .group("a", origin: nil), dryRun: true).entries == 1)
        try await store.freshen(entry, as: entry.response, groups: ["b", "c"])
        #expect(try await store.remove(where: .group("a", origin: nil), dryRun: true).entries == 0)
        #expect(try await store.remove(where: .group("c", origin: nil), dryRun: true).entries == 1)
        _ = try await store.remove(where: .all)
        // The entry has been removed meanwhile: no group is recorded, and the call does not fail.
        try await store.freshen(entry, as: entry.response, groups: ["a"])
        #expect(try await groupRows(store) == 0)
        await store.close()
    }

    @Test func groupsGoWithTheirEntry() async throws {
        let store = try openCache(scratch.cache, time)
        try await store.put("/1", [1], at: time.now, groups: ["a", "b"])
        try await store.put("/2", [1], at: time.now, groups: ["a"])
        #expect(try await groupRows(store) == 3)
        try await store.put("/1", [2], at: time.now, groups: ["c"])
        #expect(try await groupRows(store) == 2)
        #expect(try await store.remove(where: .group("a", origin: nil)).entries == 1)
        #expect(try await store.lookup(key("/2")).isEmpty)
        #expect(try await groupRows(store) == 1)
        await store.close()
    }

    @Test func groupsOfAnEntryAreBounded() async throws {
        let store = try openCache(scratch.cache, time)
        try await store.put("/1", [1], at: time.now, groups: (0...CacheStore.groupLimit).map { "g\($0)" })
        #expect(try await groupRows(store) == CacheStore.groupLimit)
        #expect(try await store.remove(where: .group("g\(CacheStore.groupLimit - 1)", origin: nil)).entries == 1)
        await store.close()
    }
}
