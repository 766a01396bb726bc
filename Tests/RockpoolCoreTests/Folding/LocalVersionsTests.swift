// docs/outbox.md#local-etags: versions that stand in a body.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct LocalVersionsTests {
    private static let byMember = Resource(collection: "/notes", version: "/_etag")
    private static let byETag = Resource(collection: "/notes")
    private static let enveloped = Resource(collection: "/notes", envelope: "/data", version: "/meta/version")

    private static func value(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }

    /// A representation with its ETag, and how it is shown with the queued write 17.
    @Test(
        arguments: [
            (byMember, #"{"_etag":"abc","n":1}"#, nil, #"{"_etag":"loc-17-abc","n":1}"#),
            (byMember, #"{"_etag":"abc","n":"abc"}"#, "\"abc\"", #"{"_etag":"loc-17-abc","n":"abc"}"#),
            (byMember, #"{"_etag":"9f86d081","n":"9f86d081"}"#, "\"9f86d081\"", #"{"_etag":"loc-17-9f86d081","n":"loc-17-9f86d081"}"#),
            (byMember, #"{"_etag":"loc-9-abc"}"#, nil, #"{"_etag":"loc-17-abc"}"#), (byMember, #"{"_etag":7}"#, nil, #"{"_etag":7}"#),
            (byMember, #"{"n":1}"#, nil, #"{"n":1}"#), (byMember, #"{"_etag":"1-é"}"#, nil, #"{"_etag":"loc-17x-22312dc3a922"}"#),
            (byETag, #"{"etag":"9f86d081","n":1}"#, "\"9f86d081\"", #"{"etag":"loc-17-9f86d081","n":1}"#),
            (byETag, #"{"etag":"abc","n":1}"#, "\"abc\"", #"{"etag":"loc-17-abc","n":1}"#),
            // A short tag is in other members by chance, and an id is one whatever its text.
            (byETag, #"{"id":"1","title":"1"}"#, "\"1\"", #"{"id":"1","title":"1"}"#),
            (byETag, #"{"title":"9f86d08"}"#, "\"9f86d08\"", #"{"title":"9f86d08"}"#),
            (byETag, #"{"id":"9f86d081","n":1}"#, "\"9f86d081\"", #"{"id":"9f86d081","n":1}"#),
            (byETag, #"{"etag":"\"abc\""}"#, "\"abc\"", #"{"etag":"\"loc-17-abc\""}"#),
            (byETag, #"{"etag":"W/\"abc\""}"#, "W/\"abc\"", #"{"etag":"\"loc-17w-abc\""}"#),
            (byETag, #"{"title":"loc-9","n":"abd"}"#, "\"abc\"", #"{"title":"loc-9","n":"abd"}"#),
            (byETag, #"{"n":"abc"}"#, nil, #"{"n":"abc"}"#),
            (enveloped, #"{"data":{"meta":{"version":"abc"}},"n":"abc"}"#, nil, #"{"data":{"meta":{"version":"loc-17-abc"}},"n":"abc"}"#),
        ] as [(Resource, String, String?, String)])
    func theVersionFollowsTheLocalTag(_ resource: Resource, _ body: String, _ etag: String?, _ shown: String) throws {
        let value = LocalVersions(resource).shown(try Self.value(body), after: 17, etag: etag.flatMap { EntityTag($0) })
        try #expect(value == Self.value(shown))
    }

    @Test(
        arguments: [
            (byMember, #"{"_etag":7,"n":1}"#, "7", #"{"_etag":8,"n":1}"#),
            (enveloped, #"{"data":{"meta":{"version":7}}}"#, "7", #"{"data":{"meta":{"version":8}}}"#),
            (enveloped, #"{"meta":{"version":7}}"#, "7", #"{"meta":{"version":8}}"#), (byMember, #"{"n":1}"#, nil, #"{"_etag":8,"n":1}"#),
            (byETag, #"{"version":7}"#, nil, #"{"version":7}"#),
        ] as [(Resource, String, String?, String)])
    func aNumberIsReadAndReplaced(_ resource: Resource, _ body: String, _ version: String?, _ replaced: String) throws {
        let versions = LocalVersions(resource)
        #expect(try versions.value(in: Array(body.utf8)) == version.map(Self.value))
        #expect(try JSONValue.parse(versions.with(8, in: Array(body.utf8))) == Self.value(replaced))
    }

    /// A body that a client sends, the operations it names, and what is sent once operation 17 has become version `v2`.
    @Test(
        arguments: [
            (byMember, #"{"_etag":"loc-17-abc","n":1}"#, [17], #"{"_etag":"v2","n":1}"#),
            (byMember, #"{"_etag":"loc-17"}"#, [17], #"{"_etag":"v2"}"#), (byMember, #"{"n":"loc-17"}"#, [], #"{"n":"loc-17"}"#),
            (byETag, #"{"etag":"loc-17-abc"}"#, [17], #"{"etag":"v2"}"#), (byETag, #"{"title":"loc-17"}"#, [], #"{"title":"loc-17"}"#),
            (enveloped, #"{"data":{"meta":{"version":"loc-17-abc"}}}"#, [17], #"{"data":{"meta":{"version":"v2"}}}"#),
            (enveloped, #"{"meta":{"version":"loc-17-abc"}}"#, [17], #"{"meta":{"version":"v2"}}"#),
            (
                byMember, #"[{"op":"test","path":"/_etag","value":"loc-17-abc"},{"op":"remove","path":"/n"}]"#, [17],
                #"[{"op":"test","path":"/_etag","value":"v2"},{"op":"remove","path":"/n"}]"#
            ),
            (byMember, "loc-17", [], "loc-17"), (byMember, #"{"_etag":"abc"}"#, [], #"{"_etag":"abc"}"#),
        ] as [(Resource, String, [Int64], String)])
    func aLocalVersionBecomesTheServers(_ resource: Resource, _ body: String, _ named: [Int64], _ sent: String) {
        let versions = LocalVersions(resource)
        #expect(versions.tags(in: Array(body.utf8)).map(\.sequence) == named)
        #expect(String(decoding: versions.replaced(in: Array(body.utf8)) { _ in "v2" }, as: UTF8.self) == sent)
        #expect(versions.replaced(in: Array(body.utf8)) { _ in nil } == Array(body.utf8))
    }

    /// Items of a list carry their versions, too.
    @Test func theVersionsOfAListFollow() throws {
        let list = try Self.value(#"[{"id":"1","_etag":"a"},{"id":"2","_etag":"b"}]"#)
        let fold = CollectionFold.fold(list, query: nil, with: [.patch(5, "2", #"{"n":1}"#)], resource: Self.byMember)
        try #expect(fold.value == Self.value(#"[{"id":"1","_etag":"a"},{"id":"2","_etag":"loc-5-b","n":1}]"#))
        // What is delivered has the version that its answer shows, or none that is known.
        let write = FoldedWrite.patch(5, "2", #"{"n":1}"#).delivered(["id": "2", "_etag": "c", "n": 1])
        let done = CollectionFold.fold(list, query: nil, with: [write], resource: Self.byMember)
        try #expect(done.value == Self.value(#"[{"id":"1","_etag":"a"},{"id":"2","_etag":"c","n":1}]"#))
    }
}
