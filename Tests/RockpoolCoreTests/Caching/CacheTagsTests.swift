// The tags of responses, which name cache groups.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct CacheTagsTests {
    private func fields(_ list: [(String, String)]) -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in list { if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) } }
        return fields
    }

    @Test(
        arguments: [
            ([("Surrogate-Key", "a b  c,d")], ["a", "b", "c,d"]), ([("Cache-Tag", "a, b c ,d")], ["a", "b c", "d"]),
            ([("xkey", "a b, c")], ["a", "b", "c"]), ([("xkey", "a"), ("XKey", "a b"), ("Cache-Tag", "")], ["a", "b"]),
            ([("ETag", "x")], []),
        ] as [([(String, String)], [String])])
    func names(list: [(String, String)], expected: [String]) { #expect(CacheTags.names(in: fields(list)) == expected) }

    @Test func groupsAndTagsAreOneList() {
        #expect(CacheGroups.all(in: fields([("Cache-Groups", "\"a\", \"b\""), ("Surrogate-Key", "b c")])) == ["a", "b", "c"])
    }

    @Test func manyAndLongTagsAreBounded() {
        let many = (0..<500).map { "tag\($0)" }.joined(separator: " ")
        #expect(CacheTags.names(in: fields([("Surrogate-Key", many)])).count == CacheTags.maxTags)
        #expect(CacheTags.names(in: fields([("xkey", String(repeating: "x", count: 500))])).isEmpty)
    }

    @Test func tagsAreRemovedAndNothingElse() {
        var all = fields([("Surrogate-Key", "a"), ("ETag", "x"), ("xkey", "b"), ("Cache-Tag", "c"), ("Cache-Groups", "\"d\"")])
        CacheTags.remove(from: &all)
        #expect(all.map(\.name.canonicalName) == ["etag", "cache-groups"])
    }
}
