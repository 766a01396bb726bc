// Lists of entries: ordered, by prefix and category, in pages (docs/reference/admin-api.md#cache).
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct CacheListTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private func filled() async throws -> CacheStore {
        let store = try openCache(scratch.cache, time)
        for target in ["/v1/b", "/v2", "/v1/a", "/v1/a?x=1"] { try await store.put(target, [1], at: time.now) }
        try await store.put("/v1/a", [1], at: time.now, vary: [.acceptLanguage: "de"])
        try await store.put("/v1/a", [1], at: time.now, identity: "somebody")
        try await store.put("/v1/c", [1], category: .critical, at: time.now)
        return store
    }

    private func everything(_ store: CacheStore, prefix: String, category: String?, limit: Int) async throws -> [CacheListing] {
        var all: [CacheListing] = []
        while true {
            let cursor = try all.last.map { try #require(CacheCursor(text: $0.cursor.text)) }
            let page = try await store.list(prefix: prefix, category: category, after: cursor, limit: limit)
            #expect(page.count <= limit)
            all += page
            if page.count < limit { return all }
        }
    }

    @Test(
        arguments: [
            ("", nil, ["/v1/a", "/v1/a", "/v1/a", "/v1/a?x=1", "/v1/b", "/v1/c", "/v2"]),
            ("https://api.example.com/v1/", nil, ["/v1/a", "/v1/a", "/v1/a", "/v1/a?x=1", "/v1/b", "/v1/c"]),
            ("https://api.example.com/v1/", "assets", ["/v1/a", "/v1/a", "/v1/a", "/v1/a?x=1", "/v1/b"]),
            ("", "critical", ["/v1/c"]), ("", "nothing", []), ("https://b", nil, []),
        ] as [(String, String?, [String])], [1, 2, 3, 100])
    func everyEntryIsOnOnePage(_ asked: (prefix: String, category: String?, targets: [String]), limit: Int) async throws {
        let store = try await filled()
        let found = try await everything(store, prefix: asked.prefix, category: asked.category, limit: limit)
        #expect(found.map(\.url) == asked.targets.map { origin.url + $0 })
        #expect(Set(found.map(\.id)).count == found.count)
        await store.close()
    }

    @Test func anItemSaysWhatTheContractAsks() async throws {
        let store = try await filled()
        let found = try await store.list(prefix: origin.url + "/v1/a")
        #expect(found.map(\.variants) == [3, 3, 3, 1])
        #expect(found.map(\.isPrivate) == [false, false, true, false])
        let first = try #require(found.first)
        #expect(first.method == "GET" && first.category == "assets" && first.status == 200 && !first.isPinned)
        #expect(first.bytes > 0 && first.storedAt == time.now && first.lastUsedAt == time.now)
        #expect(first.freshUntil == time.now + .hours(1))
        await store.close()
    }

    /// Returns the paths of all entries that a filter selects, two on a page.
    private func listed(_ store: CacheStore, _ change: (inout CacheListFilter) -> Void) async throws -> [String] {
        var filter = CacheListFilter()
        change(&filter)
        var all: [CacheListing] = []
        while true {
            let page = try await store.list(filter, after: all.last?.cursor, limit: 2)
            all += page
            guard page.count == 2 else { break }
        }
        try await #expect(store.count(filter) == all.count)
        return all.map { String($0.url.dropFirst(origin.url.count)) }
    }

    @Test func entriesAreFoundByWhatTheyAre() async throws {
        let store = try openCache(scratch.cache, time)
        for (number, size) in [300, 20_000, 1].enumerated() {
            try await store.put("/\(number)", bytes(size, seed: UInt64(number)), at: time.now, ttl: .minutes(Int64(60 * (number + 1))))
            time.advance(.minutes(50))
        }
        _ = try await store.pin(url: origin.url + "/2", true)
        for (path, count) in [("/0", 1), ("/2", 3)] {
            for _ in 0..<count { store.use(try #require(try await store.only(path))) }
        }
        try await #expect(listed(store) { $0.order = .size } == ["/1", "/0", "/2"])
        try await #expect(listed(store) { $0.order = .age } == ["/0", "/1", "/2"])
        try await #expect(listed(store) { $0.order = .hits } == ["/2", "/0", "/1"])
        try await #expect(listed(store) { $0.isStale = true } == ["/0"])
        try await #expect(listed(store) { $0.isStale = false } == ["/1", "/2"])
        try await #expect(listed(store) { $0.isPinned = true } == ["/2"])
        try await #expect(listed(store) { $0.storedBefore = time.now - .minutes(120) } == ["/0"])
        try await #expect(listed(store) { $0.statuses = [200...299] }.count == 3)
        try await #expect(listed(store) { $0.statuses = [404...404, 500...599] }.isEmpty)
        try await #expect(listed(store) { ($0.text, $0.order) = ("/1", .hits) } == ["/1"])
        store.use(try #require(try await store.only("/0")))
        #expect(try await store.list().map(\.hits) == [2, 0, 3], "uses that are not written back count too")
        await store.close()
    }

    @Test func aCursorOutlivesItsEntry() async throws {
        let store = try await filled()
        let first = try await store.list(limit: 2)
        _ = try await store.remove(where: .urls([origin.url + "/v1/a"]))
        #expect(try await store.list(after: first.last?.cursor, limit: 1).map(\.url) == [origin.url + "/v1/a?x=1"])
        await store.close()
    }

    @Test(arguments: ["", "x", "=", "AAAA", "Zm9v", "MTIz", "🦀", "IA"])
    func whatIsNoCursorIsNil(_ text: String) { #expect(CacheCursor(text: text) == nil) }

    @Test(arguments: ["https://a/?x=1&y=~~~???>>>", "https://a/ b", "", "https://ü/"])
    func aCursorComesBackFromItsText(_ url: String) {
        let cursor = CacheCursor(place: url, id: 12)
        #expect(CacheCursor(text: cursor.text) == cursor)
        #expect(cursor.text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") })
    }

    @Test(arguments: [(0, 1), (1, 1), (-7, 1), (1001, 7)])
    func aPageIsNeitherEmptyNorWithoutBound(_ limit: Int, count: Int) async throws {
        let store = try await filled()
        #expect(try await store.list(limit: limit).count == count)
        await store.close()
    }

    @Test func everyEntryOfAURLIsFound() async throws {
        let store = try await filled()
        let found = try await store.entries(ofURL: origin.url + "/v1/a")
        #expect(found.map(\.key.identity).sorted() == ["", "", "somebody"])
        #expect(found.compactMap { $0.response.requestFields[.acceptLanguage] } == ["de"])
        #expect(try await store.entries(ofURL: origin.url + "/v1").isEmpty)
        await store.close()
    }

    /// The query plan uses the index: the cost of a page depends on its size, not on the size of the cache.
    @Test func aPageIsFoundByTheIndexOfURLs() async throws {
        let store = try await filled()
        for cursor in [nil, CacheCursor(place: "b", id: 1)] {
            let query = CacheListFilter().page(after: cursor, limit: 1, at: time.now)
            let plan = try await store.database.pool.read { db in
                try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(query.sql)", arguments: query.arguments)
                    .map { $0["detail"] as String? ?? "" }
            }
            #expect(plan.contains { $0.contains("USING INDEX entry_url (url>? AND url<?)") }, "\(plan)")
        }
        await store.close()
    }
}
