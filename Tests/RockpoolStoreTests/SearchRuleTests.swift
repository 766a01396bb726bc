// Rules about query parameters per path: known at once, kept across starts, and bounded (No-Vary-Search).
import GRDB
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct SearchRuleTests {
    let scratch: Scratch
    let time = ManualTime()
    let path = "https://api.example.com/search"

    init() throws { scratch = try Scratch() }

    private func rows(_ store: CacheStore) async throws -> [String] {
        try await store.database.pool.read { try String.fetchAll($0, sql: "SELECT path || ' ' || rule FROM search_rule ORDER BY path") }
    }

    @Test func aRuleIsKnownUntilItIsForgottenAlsoAfterAStart() async throws {
        var store = try openCache(scratch.cache, time)
        #expect(store.searchRule(ofPath: path) == nil)
        try await store.noteSearchRule("params", ofPath: path)
        try await store.noteSearchRule("key-order", ofPath: path)
        #expect(store.searchRule(ofPath: path) == "key-order")
        #expect(store.searchRule(ofPath: path + "/a") == nil)
        await store.close()
        store = try openCache(scratch.cache, time)
        #expect(store.searchRule(ofPath: path) == "key-order")
        try await store.noteSearchRule(nil, ofPath: path)
        #expect(store.searchRule(ofPath: path) == nil)
        #expect(try await rows(store).isEmpty)
        await store.close()
        store = try openCache(scratch.cache, time)
        #expect(store.searchRule(ofPath: path) == nil)
        await store.close()
    }

    @Test(arguments: [0, 1])
    func aRuleTooLongIsAsGoodAsNone(_ excess: Int) async throws {
        let store = try openCache(scratch.cache, time)
        try await store.noteSearchRule("params", ofPath: path)
        let rule = String(repeating: "x", count: CacheStore.searchRuleBytes - path.utf8.count + excess)
        try await store.noteSearchRule(rule, ofPath: path)
        #expect(store.searchRule(ofPath: path) == (excess == 0 ? rule : nil))
        #expect(try await rows(store).count == 1 - excess)
        await store.close()
    }

    @Test func theLeastRecentlyNotedGoes() async throws {
        let settings = storage(cache: .mb(8))
        let limit = CacheStore.searchRuleLimit(settings.cacheLimit)
        #expect(limit == 488)
        var store = try openCache(scratch.cache, time, settings)
        for n in 0..<limit { try await store.noteSearchRule("params", ofPath: "\(path)/\(n)") }
        try await store.noteSearchRule("params", ofPath: "\(path)/0")
        for n in limit..<limit + 2 { try await store.noteSearchRule("params", ofPath: "\(path)/\(n)") }
        for _ in 0..<2 {
            #expect(try await rows(store).count == limit)
            let known = [0, 1, 2, 3, limit + 1].map { store.searchRule(ofPath: "\(path)/\($0)") != nil }
            #expect(known == [true, false, false, true, true])
            await store.close()
            store = try openCache(scratch.cache, time, settings)
        }
        await store.close()
    }

    @Test func aNoteThatIsNoNewsIsNotWritten() {
        let rules = SearchRules(limit: 2)
        let hour: Int64 = 3_600_000
        let steps: [(rule: String?, path: String, at: Int64, written: [String])] = [
            (nil, "a", 0, []), ("x", "a", 0, ["a"]), ("x", "a", hour - 1, []), ("x", "a", hour, ["a"]), ("y", "a", hour, ["a"]),
            ("x", "b", hour, ["b"]), ("y", "a", hour, []), ("x", "c", hour, ["c", "b"]), (nil, "a", hour, ["a"]), (nil, "a", hour, []),
        ]
        for (n, step) in steps.enumerated() {
            #expect(rules.note(step.rule, of: step.path, at: step.at) == step.written, "\(n)")
        }
        #expect((rules["a"], rules["b"], rules["c"]) == (nil, nil, "x"))
    }

    @Test func withoutRoomTheOldRuleIsNotLeftForTheNextStart() async throws {
        var store = try openCache(scratch.cache, time)
        try await store.noteSearchRule("params", ofPath: path)
        await store.close()
        store = try openCache(scratch.cache, time, storage(minFree: ByteCount(.max)))
        try await store.noteSearchRule("key-order", ofPath: path)
        #expect(store.searchRule(ofPath: path) == "key-order")
        #expect(try await rows(store).isEmpty)
        await store.close()
    }
}
