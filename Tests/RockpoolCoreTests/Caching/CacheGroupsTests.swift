// RFC 9875: the groups of a response, and the responses that invalidate groups.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct CacheGroupsTests {
    private static let long = String(repeating: "g", count: CacheGroups.maxNameLength)

    @Test(arguments: [
        ("", []), ("Cache-Groups: \"a\"", ["a"]), ("Cache-Groups: \"a\", \"b\"", ["a", "b"]),
        ("Cache-Groups: \"a\" | Cache-Groups: \"b\"", ["a", "b"]), ("Cache-Groups: \"a\";x=1;y, \"A\", \"a\"", ["a", "A"]),
        ("Cache-Groups: \"\\\"q\\\\\"", ["\"q\\"]), ("Cache-Groups: \"\"", [""]), ("Cache-Groups:", []),
        // A malformed field is ignored completely.
        ("Cache-Groups: a", []), ("Cache-Groups: \"a\", b", []), ("Cache-Groups: \"a\", (\"b\")", []), ("Cache-Groups: \"a\",", []),
        ("Cache-Groups: \"a", []), ("Cache-Groups: 1", []), ("Cache-Groups: \"é\"", []),
        ("Cache-Groups: \"\(long)\", \"\(long)g\", \"a\"", [long, "a"]),
    ])
    func names(_ fields: String, names: [String]) { #expect(CacheGroups.names(in: CachingFixture.fields(fields)) == names) }

    @Test func asManyAsTheRFCAsksFor() {
        let names = (0..<CacheGroups.maxNames).map { number in "\(number)-" + String(repeating: "g", count: number < 10 ? 30 : 29) }
        let value = names.map { "\"\($0)\"" }.joined(separator: ", ")
        #expect(CacheGroups.names(in: CachingFixture.fields("Cache-Groups: \(value)")) == names)
        #expect(CacheGroups.names(in: CachingFixture.fields("Cache-Groups: \(value), \"one more\"")) == names)
        #expect(CacheGroups.names(in: CachingFixture.fields("Cache-Groups: \(value), token")) == [])
        let spaces = String(repeating: " ", count: CacheGroups.maxFieldBytes)
        #expect(CacheGroups.names(in: CachingFixture.fields("Cache-Groups: \"a\",\(spaces)\"b\"")) == [])
    }

    @Test(arguments: [
        (HTTPRequest.Method.post, 200, ["a"]), (.put, 303, ["a"]), (.delete, 204, ["a"]), (.patch, 399, ["a"]),
        (.get, 200, []), (.head, 200, []), (.options, 200, []), (.post, 400, []), (.post, 500, []), (.post, 199, []),
    ])
    func invalidation(_ method: HTTPRequest.Method, status: Int, names: [String]) {
        let response = CachingFixture.response("Cache-Groups: \"b\" | Cache-Group-Invalidation: \"a\";p, \"a\"", status: status)
        #expect(CacheGroups.invalidated(by: response, to: CachingFixture.request(method: method)) == names)
    }

    @Test func queriesAreSafe() throws {
        let query = try #require(HTTPRequest.Method("QUERY"))
        let response = CachingFixture.response("Cache-Group-Invalidation: \"a\"")
        #expect(CacheGroups.invalidated(by: response, to: CachingFixture.request(method: query)) == [])
    }
}
