// Own writes in the cache's tables: marks, the copies they concern, and responses that were requested before (docs/outbox.md#effects).
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct OwnWriteTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private let annas = StoragePartition.readable(by: "anna")
    private func url(_ target: String) -> String { origin.url + target }

    /// Returns the one copy of a target, from the disk or from memory.
    private func copy(_ store: CacheStore, _ target: String, _ identity: String = "anna") async throws -> StoredResponse? {
        let found = try await store.lookup(key(target, identity: identity))
        #expect(found.count < 2, "\(target)")
        return found.first?.response
    }

    /// Stores the result of a write that was sent at `sent` and has ended at `ended`.
    private func store(
        _ body: String, at target: String, sent: Tick, ended: Tick, in store: CacheStore, status: Int = 200
    ) async throws {
        var response = StoredResponse(
            head: ResponseHead(status: status, fields: [.eTag: "\"2\""]), requestTime: time.now, asked: sent,
            responseTime: time.now, category: "assets")
        response.ownWrite = OwnWriteMark(at: ended, isIncluded: true)
        response.isInvalidated = true
        let isStored = try await store.replace(
            key(target, identity: "anna"), by: response, body: ByteBuffer(string: body), category: .assets)
        #expect(isStored)
    }

    private func text(_ store: CacheStore, _ target: String) async throws -> String? {
        guard let entry = try await store.lookup(key(target, identity: "anna")).first else { return nil }
        return try await store.bytes(of: entry).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func aWriteMarksThePathWithEveryQueryForItsWriter() async throws {
        let store = try openCache(scratch.cache, time)
        let targets = ["/n", "/n?x=1", "/n/1", "/n1", "/N"]
        for (target, identity) in targets.flatMap({ target in ["anna", "", "bert"].map { (target, $0) } }) {
            _ = try await store.put(target, [1], at: time.now, identity: identity)
            _ = try await store.lookup(key(target, identity: identity))
        }
        let ended = store.ticks.next()
        try await store.markOwnWrite(urls: [url("/n")], partitions: annas, at: ended)
        let mark = OwnWriteMark(at: ended, isIncluded: false)
        for _ in 0..<2 {
            // Read from the disk first, then from memory.
            for target in targets {
                let isMarked = target == "/n" || target == "/n?x=1"
                for identity in ["anna", ""] {
                    let found = try #require(try await copy(store, target, identity))
                    #expect(found.ownWrite == (isMarked ? mark : nil) && found.isDirty == isMarked, "\(target) of \(identity)")
                    #expect(found.isInvalidated == isMarked, "\(target) of \(identity)")
                }
                let others = try #require(try await copy(store, target, "bert"))
                #expect(others.ownWrite == nil && others.isInvalidated == isMarked, "\(target) of bert must only be revalidated")
            }
        }
        await store.close()
        let again = try openCache(scratch.cache, time)
        try await #expect(copy(again, "/n")?.ownWrite == mark)
        await again.close()
    }

    /// A write below a path marks what the writer reads of it: it is validated, and other identities' copies stay as they are.
    @Test func aWriteNearbyMarksTheWritersCopiesOnly() async throws {
        let store = try openCache(scratch.cache, time)
        for (target, identity) in ["/n/", "/n/?l", "/n/1"].flatMap({ target in ["anna", "", "bert"].map { (target, $0) } }) {
            _ = try await store.put(target, [1], at: time.now, identity: identity)
        }
        let ended = store.ticks.next()
        try await store.markNearOwnWrite(urls: [url("/n/"), url("/n")], partitions: annas, at: ended)
        let mark = OwnWriteMark(at: ended, isIncluded: false)
        for target in ["/n/", "/n/?l", "/n/1"] {
            for identity in ["anna", "", "bert"] {
                let found = try #require(try await copy(store, target, identity))
                #expect(found.ownWrite == (target != "/n/1" && identity != "bert" ? mark : nil), "\(target) of \(identity)")
                #expect(!found.isInvalidated, "\(target) of \(identity)")
            }
        }
        // Nothing is left to be marked, until a copy is stored again.
        #expect(store.invalidateAbsent([], near: [url("/n/")], partitions: annas))
        #expect(!store.invalidateAbsent([], near: [url("/n/")], partitions: StoragePartition.readable(by: "bert")))
        time.advance(.seconds(1))
        _ = try await store.put("/n/", [2], at: time.now, identity: "anna")
        #expect(!store.invalidateAbsent([], near: [url("/n/")], partitions: annas))
        // A response that was requested before the write lacks it.
        let sent = store.ticks.next()
        try await store.markNearOwnWrite(urls: [url("/m")], partitions: annas, at: store.ticks.next())
        _ = try await store.put("/m", [1], at: time.now, asked: sent, identity: "anna")
        try await #expect(copy(store, "/m")?.isDirty == true)
        time.advance(.seconds(1))
        _ = try await store.put("/m", [1], at: time.now, identity: "anna")
        try await #expect(copy(store, "/m")?.isDirty == false)
        await store.close()
    }

    @Test func theCopiesOfAPathAreThoseTheWriterReadsNewestFirst() async throws {
        let store = try openCache(scratch.cache, time)
        for (target, identity) in [("/n?b", "anna"), ("/n", ""), ("/n?a", "anna"), ("/n", "bert"), ("/n/1", "anna"), ("/nn", "anna")] {
            _ = try await store.put(target, [1], at: time.now, identity: identity)
            time.advance(.seconds(1))
        }
        _ = try await store.putPart("/n?part", [1, 2], of: 4, at: time.now)
        let found = try await store.copies(ofPath: url("/n"), in: annas, limit: 10)
        #expect(found.map(\.key.url) == ["/n?a", "/n", "/n?b"].map { url($0) })
        #expect(found.map(\.key.identity) == ["anna", "", "anna"])
        let newest = try await store.copies(ofPath: url("/n"), in: annas, limit: 1)
        #expect(newest.map(\.key.url) == [url("/n?a")])
        try await #expect(store.copies(ofPath: url("/nothing"), in: annas, limit: 10).isEmpty)
        await store.close()
    }

    @Test(arguments: [200, 404]) func aResultTakesThePlaceOfTheCopy(_ status: Int) async throws {
        let store = try openCache(scratch.cache, time)
        _ = try await store.put("/n", Array("old".utf8), at: time.now, identity: "anna")
        let (sent, ended) = (store.ticks.next(), store.ticks.next())
        try await store.markOwnWrite(urls: [url("/n")], partitions: annas, at: ended)
        try await self.store("new", at: "/n", sent: sent, ended: ended, in: store, status: status)
        let found = try #require(try await copy(store, "/n"))
        #expect(found.head.status == status && found.head.fields[.eTag] == "\"2\"")
        #expect(found.ownWrite == OwnWriteMark(at: ended, isIncluded: true) && !found.isDirty)
        #expect(found.isInvalidated, "the upstream's own representation is fetched while it is reachable")
        try await #expect(text(store, "/n") == "new")
        await store.close()
        let again = try openCache(scratch.cache, time)
        try await #expect(copy(again, "/n") == found)
        await again.close()
    }

    @Test func aResponseRequestedBeforeDoesNotReplaceTheResult() async throws {
        let store = try openCache(scratch.cache, time)
        let (before, ended) = (store.ticks.next(), store.ticks.next())
        try await store.markOwnWrite(urls: [url("/n")], partitions: annas, at: ended)
        try await self.store("result", at: "/n", sent: before, ended: ended, in: store)
        // The commit may refuse the response by an error; either way the result stays.
        _ = try? await store.put("/n", Array("older".utf8), at: time.now, asked: before, identity: "anna")
        try await #expect(text(store, "/n") == "result")
        try await #expect(copy(store, "/n")?.isDirty == false)

        _ = try await store.put("/n", Array("fetched".utf8), at: time.now, identity: "anna")
        try await #expect(text(store, "/n") == "fetched")
        let fetched = try #require(try await copy(store, "/n"))
        #expect(fetched.ownWrite == nil && !fetched.isInvalidated, "a later read confirms the state")
        await store.close()
    }

    @Test(arguments: ["/n", "/n?x=1"]) func aResponseRequestedBeforeIsNotServedAsIfItIncludedTheWrite(_ target: String) async throws {
        let store = try openCache(scratch.cache, time)
        let (before, ended) = (store.ticks.next(), store.ticks.next())
        try await store.markOwnWrite(urls: [url("/n")], partitions: annas, at: ended)
        let mark = OwnWriteMark(at: ended, isIncluded: false)
        _ = try await store.put(target, Array("older".utf8), at: time.now, asked: before, identity: "anna")
        let older = try #require(try await copy(store, target))
        #expect(older.ownWrite == mark && older.isDirty && older.isInvalidated && !older.isKnownState)
        await store.close()
    }

    @Test func aSecondWriteMakesTheResultOfTheFirstOutOfDate() async throws {
        let store = try openCache(scratch.cache, time)
        try await self.store("first", at: "/n", sent: store.ticks.next(), ended: store.ticks.next(), in: store)
        let second = store.ticks.next()
        try await store.markOwnWrite(urls: [url("/n")], partitions: annas, at: second)
        try await #expect(copy(store, "/n")?.ownWrite == OwnWriteMark(at: second, isIncluded: false))
        try await #expect(text(store, "/n") == "first", "it is kept for reads without the upstream")
        await store.close()
    }
}
