// Storing and lookup: entries read back from memory, a row or a file, and entries that are not found
// (docs/storage.md#what-is-stored-where).
import Foundation
import GRDB
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolStore

@Suite struct CacheStoreTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    @Test(arguments: [0, 1, 32_768, 32_769, 3_000_000], [true, false])
    func aBodyComesBackAsItWas(_ length: Int, announced: Bool) async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(length)
        let fields: HTTPFields = [.eTag: "\"1\"", .contentType: "text/plain"]
        _ = try #require(await store.put("/a", body, at: time.now, fields: fields, announced: announced))
        let found = try #require(try await store.lookup(key("/a")).first)
        #expect(found.response.head.fields == fields)
        #expect(found.response.bodyLength == Int64(length))
        #expect(found.response.assignedTTL == .hours(1))
        #expect(try await store.bytes(of: found) == body)
        await store.close()
        let again = try openCache(scratch.cache, time)
        let kept = try #require(try await again.lookup(key("/a")).first)
        #expect(kept.response == found.response)
        #expect(try await again.bytes(of: kept) == body)
        await again.close()
    }

    @Test func variantsLiveSideBySideAndReplaceTheirOwn() async throws {
        let store = try openCache(scratch.cache, time)
        for (language, text) in [("de", "hallo"), ("en", "hello"), ("de", "moin")] {
            _ = try await store.put("/a", Array(text.utf8), at: time.now, vary: [.acceptLanguage: language])
            time.advance(.seconds(1))
        }
        let found = try await store.lookup(key("/a"))
        #expect(found.map { $0.response.requestFields[.acceptLanguage] } == ["de", "en"])
        #expect(try await store.bytes(of: found[0]) == Array("moin".utf8))
        #expect(try await store.lookup(key("/a", identity: "somebody")).isEmpty)
        await store.close()
    }

    /// A client that is found to be one under another name: of two copies of one variant the newer stays, in a row or in a file.
    @Test func copiesMoveToAnotherNameOfTheirClient() async throws {
        let store = try openCache(scratch.cache, time)
        let copies = [
            ("/mine", "token", 10), ("/both", "anna", 20), ("/both", "token", 40_000), ("/older", "token", 30), ("/older", "anna", 40),
            ("/other", "bob", 50),
        ]
        for (path, identity, length) in copies {
            try await store.put(path, bytes(length), at: time.now, identity: identity)
            time.advance(.seconds(1))
        }
        for path in ["/mine", "/both", "/older"] {
            _ = try await store.lookup([key(path, identity: "anna"), key(path, identity: "token")])
        }
        try await store.move("token", to: "anna")
        for again in [false, true] {
            let store = again ? try openCache(scratch.cache, time) : store
            for (path, length) in [("/mine", 10), ("/both", 40_000), ("/older", 40)] {
                let found = try await store.lookup(key(path, identity: "anna"))
                #expect(found.map(\.response.bodyLength) == [Int64(length)], "\(path)")
                let entry = try #require(found.first)
                #expect(try await store.bytes(of: entry) == bytes(length), "\(path)")
                #expect(try await store.lookup(key(path, identity: "token")).isEmpty, "\(path)")
            }
            #expect(try await store.copiesByIdentity().map { "\($0.identity) \($0.entries)" } == ["anna 3", "bob 1"])
            try await store.move("nobody", to: "anna")
            await store.close()
        }
    }

    @Test func variantsOfAKeyAreBounded() async throws {
        let store = try openCache(scratch.cache, time)
        for n in 0..<70 { _ = try await store.put("/a", [1], at: time.now, vary: [.acceptLanguage: "x-\(n)"]) }
        #expect(try await store.lookup(key("/a")).count == CacheStore.variantLimit)
        await store.close()
    }

    /// Somebody asks in ever new languages; what others use stays.
    @Test func newVariantsDisplaceNoneThatAreUsed() async throws {
        let store = try openCache(scratch.cache, time)
        for n in 0..<40 { _ = try await store.put("/a", [1], at: time.now, vary: [.acceptLanguage: "used-\(n)"]) }
        time.advance(.seconds(5))
        for entry in try await store.lookup(key("/a")) { store.use(entry) }
        for n in 0..<300 {
            time.advance(.seconds(5))
            _ = try await store.put("/a", [1], at: time.now, vary: [.acceptLanguage: "new-\(n)"])
        }
        let languages = try await store.lookup(key("/a")).compactMap { $0.response.requestFields[.acceptLanguage] }
        #expect(languages.filter { $0.hasPrefix("used-") }.count == 40 && languages.contains("new-299"))
        #expect(languages.count == CacheStore.variantLimit)
        await store.close()
    }

    @Test func memoryAnswersOnceTheDiskWasAskedAndForgetsWhatChanged() async throws {
        let store = try openCache(scratch.cache, time)
        _ = try await store.put("/a", [1], at: time.now)
        #expect(store.lookupInMemory(key("/a")) == nil)
        let entry = try #require(try await store.lookup(key("/a")).first)
        _ = try await store.body(of: entry)
        #expect(store.lookupInMemory(key("/a"))?.first?.id == entry.id)
        #expect(store.bodyInMemory(of: entry) == ByteBuffer(bytes: [1]))
        _ = try await store.put("/a", [2], at: time.now)
        #expect(store.lookupInMemory(key("/a")) == nil)
        let newer = try #require(try await store.lookup(key("/a")).first)
        #expect(try await store.bytes(of: newer) == [2])
        await store.close()
    }

    @Test func freshenedHeadsKeepTheirBody() async throws {
        let store = try openCache(scratch.cache, time)
        var entry = try #require(await store.put("/a", bytes(40_000), at: time.now, fields: [.eTag: "\"1\""]))
        _ = try await store.lookup(key("/a"))
        entry.response.head.fields[.eTag] = "\"2\""
        try await store.freshen(entry, as: entry.response)
        let found = try #require(try await store.lookup(key("/a")).first)
        #expect(found.response.head.fields[.eTag] == "\"2\"")
        #expect(try await store.bytes(of: found) == bytes(40_000))
        await store.close()
    }

    /// What is read next is the validated copy, and so it is after a start.
    @Test func aValidatedCopyInMemoryIsWrittenLater() async throws {
        let store = try openCache(scratch.cache, time)
        for path in ["/a", "/b"] {
            try await store.put(path, bytes(40_000), at: time.now, fields: [.eTag: "\"1\""])
            let entry = try #require(try await store.lookup(key(path)).first)
            time.advance(.seconds(1))
            for tag in ["\"2\"", "\"3\""] {
                var response = entry.response
                response.head.fields[.eTag] = tag
                (response.requestTime, response.asked, response.responseTime) = (time.now, store.ticks.next(), time.now)
                try await store.freshen(entry, as: response, groups: [])
                #expect(store.lookupInMemory(key(path))?.first?.response == response)
            }
        }
        _ = try await store.invalidate(urls: [origin.url + "/b"])
        await store.close()
        let again = try openCache(scratch.cache, time)
        for (path, isInvalidated) in [("/a", false), ("/b", true)] {
            let found = try #require(try await again.lookup(key(path)).first)
            #expect(found.response.head.fields[.eTag] == "\"3\"" && found.response.isInvalidated == isInvalidated, "\(path)")
            #expect(try await again.bytes(of: found) == bytes(40_000))
        }
        await again.close()
    }

    @Test func equalBodiesShareOneFileUntilTheLastGoes() async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(100_000)
        for target in ["/a", "/b", "/c"] { _ = try await store.put(target, body, at: time.now) }
        #expect(Scratch.files(under: "\(scratch.cache)/bodies").count == 1)
        // The lanes soon finish the file work that the writers left to them.
        let temporaries = { Scratch.files(under: "\(self.scratch.cache)/tmp") }
        for _ in 0..<200 where !temporaries().isEmpty { try await Task.sleep(for: .milliseconds(10)) }
        #expect(temporaries().isEmpty)
        let url = { origin.url + $0 }
        #expect(try await store.remove(where: .urls([url("/a"), url("/b"), url("/nothing")])).entries == 2)
        let last = try #require(try await store.lookup(key("/c")).first)
        #expect(try await store.bytes(of: last) == body)
        #expect(try await store.remove(where: .urls([url("/c")])).entries == 1)
        #expect(Scratch.files(under: "\(scratch.cache)/bodies").isEmpty)
        #expect(try await store.usage().bodyBytes == 0)
        await store.close()
    }

    @Test func whatIsInvalidatedStaysButIsNotFreshAnyMore() async throws {
        let store = try openCache(scratch.cache, time)
        _ = try await store.put("/a", bytes(100), at: time.now)
        #expect(try await store.invalidate(urls: [origin.url + "/a", origin.url + "/nothing"]) == 1)
        for _ in 0..<2 {
            // Read from the disk first, then from memory.
            let found = try #require(try await store.lookup(key("/a")).first)
            #expect(found.response.isInvalidated && found.response.directives.noCache == .all)
        }
        var freshened = try #require(try await store.lookup(key("/a")).first)
        (freshened.response.isInvalidated, freshened.response.asked) = (false, store.ticks.next())
        try await store.freshen(freshened, as: freshened.response)
        #expect(try await store.lookup(key("/a")).first?.response.isInvalidated == false)
        // The response was requested before the invalidation and is committed after it.
        let before = store.ticks.next()
        _ = try await store.invalidate(urls: [origin.url + "/a"])
        _ = try await store.put("/a", bytes(100), at: time.now, asked: before)
        #expect(try await store.lookup(key("/a")).first?.response.isInvalidated == true)
        _ = try await store.put("/a", bytes(100), at: time.now)
        #expect(try await store.lookup(key("/a")).first?.response.isInvalidated == false)
        await store.close()
    }

    @Test func aFileBeingReadIsUnlinkedWhenItsReaderIsDone() async throws {
        let store = try openCache(scratch.cache, time)
        let entry = try #require(await store.put("/a", bytes(2_000_000), at: time.now))
        var body = try await store.body(of: entry)
        guard case .file(let path, _, _, _)? = body else { return #expect(Bool(false), "expected a file") }
        _ = try await store.remove(where: .all)
        #expect(FileManager.default.fileExists(atPath: path))
        #expect(try await store.usage().bodyBytes >= 2_000_000)
        body = nil
        for _ in 0..<100 where FileManager.default.fileExists(atPath: path) { try await store.queue.outside { _ in } }
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(try await store.usage().bodyBytes == 0)
        await store.close()
    }

    @Test(arguments: [100, 100_000])
    func aBodyThatChangedIsAMiss(_ length: Int) async throws {
        let first = try openCache(scratch.cache, time)
        _ = try await first.put("/a", bytes(length), at: time.now)
        if length <= 32_768 {
            try await first.queue.commit { try $0.execute(sql: "UPDATE entry SET body = zeroblob(length(body))") }
        }
        await first.close()
        for file in Scratch.files(under: "\(scratch.cache)/bodies") {
            let handle = try #require(FileHandle(forWritingAtPath: file))
            try handle.write(contentsOf: Data([0, 0, 0]))
            try handle.close()
        }
        let store = try openCache(scratch.cache, time)
        let entry = try #require(try await store.lookup(key("/a")).first)
        #expect(try await store.body(of: entry) == nil)
        #expect(try await store.lookup(key("/a")).isEmpty)
        #expect(try await store.usage().badBodies == 1)
        try await eventually("the file is removed") { Scratch.files(under: "\(scratch.cache)/bodies").isEmpty }
        await store.close()
    }

    @Test func aDroppedWriterLeavesNothing() async throws {
        let store = try openCache(scratch.cache, time)
        let before = try await store.usage()
        var writer = await store.beginWrite(expectedLength: 500_000, category: .assets)
        #expect(try await writer?.append(ByteBuffer(bytes: bytes(100_000))) == true)
        #expect(Scratch.files(under: "\(scratch.cache)/tmp").count == 1)
        #expect(try await store.usage().reservedBytes >= 500_000)
        writer = nil
        // The file work that the writer left to the lanes is soon done.
        try await eventually("its file is removed") { Scratch.files(under: "\(scratch.cache)/tmp").isEmpty }
        try await eventually("its room is given back") { try await store.usage().reservedBytes == before.reservedBytes }
        await store.close()
    }

    @Test func aBodyShorterThanAnnouncedIsNotStored() async throws {
        let store = try openCache(scratch.cache, time)
        let writer = try #require(await store.beginWrite(expectedLength: 10, category: .assets))
        #expect(try await writer.append(ByteBuffer(bytes: [1, 2, 3])))
        let response = StoredResponse(head: ResponseHead(status: 200), requestTime: time.now, responseTime: time.now)
        await #expect(throws: IncompleteBody.self) { try await store.commit(writer, key: key("/a"), response: response) }
        #expect(try await store.lookup(key("/a")).isEmpty)
        await store.close()
    }

    @Test(arguments: [
        (CacheFilter.prefix("https://api.example.com/v1/"), 2), (.category("assets"), 3), (.all, 4),
        (.upstream(OriginAddress(scheme: .https, host: "api.example.com")), 4), (.upstream(OriginAddress(scheme: .http, host: "b")), 0),
        (.urls(["https://api.example.com/v1/a"]), 1),
    ])
    func removalTakesWhatItsFilterNamesAndADryRunCountsTheSame(_ filter: CacheFilter, count: Int) async throws {
        let store = try openCache(scratch.cache, time)
        for target in ["/v1/a", "/v1/b", "/v2/a"] { _ = try await store.put(target, bytes(100), at: time.now) }
        _ = try await store.put("/x", bytes(50_000), category: .critical, at: time.now)
        let dry = try await store.remove(where: filter, dryRun: true)
        #expect(try await store.usage().entries == 4)
        let real = try await store.remove(where: filter)
        #expect(dry == real)
        #expect(real.entries == count)
        #expect(try await store.usage().entries == 4 - count)
        await store.close()
    }

    /// Damage that is met while running is noted, so that the next start begins with a new database.
    @Test func aDamagedDatabaseIsSetAsideByTheNextStart() async throws {
        let store = try openCache(scratch.cache, time)
        for n in 0..<300 { _ = try await store.put("/\(n)", bytes(3000, seed: UInt64(n + 1)), at: time.now) }
        await store.close()
        let path = "\(scratch.cache)/cache.sqlite"
        let size = try #require(FileStatus.of(path)?.size)
        let file = try #require(FileHandle(forWritingAtPath: path))
        for page in stride(from: UInt64(8192 * 2), to: UInt64(size), by: 8192 * 3) {
            try file.seek(toOffset: page)
            try file.write(contentsOf: Data(repeating: 0x5A, count: 3000))
        }
        try file.close()
        let again = try openCache(scratch.cache, time)
        for n in 0..<300 where again.trouble == nil { _ = try? await again.put("/n\(n)", bytes(3000), at: time.now) }
        #expect(again.trouble?.fault == .damaged)
        await again.close()
        let fresh = try openCache(scratch.cache, time)
        try await eventually("it stores", within: .seconds(60)) { fresh.isOpenForWrites }
        #expect(try await fresh.put("/new", bytes(3000), at: time.now) != nil && fresh.trouble == nil)
        await fresh.close()
    }

    @Test func aCacheDeletedUnderTheServerGoesOn() async throws {
        let store = try openCache(scratch.cache, time)
        try FileManager.default.removeItem(atPath: scratch.cache)
        let entry = try #require(try await store.put("/a", bytes(200_000), at: time.now))
        #expect(try await store.bytes(of: entry) == bytes(200_000))
        await store.close()
        // The index was deleted with the directory; at the next start the directory is recognised as the cache's own, and files without a
        // row are removed.
        let again = try openCache(scratch.cache, time)
        #expect(try await again.put("/b", bytes(200_000, seed: 2), at: time.now) != nil || again.isSweeping)
        await again.close()
    }
}
