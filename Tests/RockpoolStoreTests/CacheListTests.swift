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
        let cursor = CacheCursor(url: url, id: 12)
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
        let plan = try await store.database.pool.read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(CacheListing.pageQuery)", arguments: ["", "x", "", 0, nil, nil, 1, 0])
                .map { $0["detail"] as String? ?? "" }
        }
        #expect(plan.contains { $0.contains("USING INDEX entry_url (url>? AND url<?)") }, "\(plan)")
        await store.close()
    }
}
