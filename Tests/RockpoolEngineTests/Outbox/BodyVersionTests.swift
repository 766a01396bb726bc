// Clients that send the version back which stands in a representation, as Eve's do (docs/outbox.md#local-etags).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct BodyVersionTests {
    /// - Parameter version: `etag`, or the pointer of the declared version.
    private func pool(_ version: String = "/_etag", response: Resource.OfflineResponse = .accepted) async throws -> ScriptedEngine {
        try await ScriptedEngine.holdingOne(
            .declared(response, version: version), body: #"{"id":1,"title":"sea","_etag":"v1"}"#, etag: "\"v1\"")
    }

    private static func answer(_ version: String) -> ScriptedAnswer {
        .json(#"{"id":1,"_etag":"\#(version)"}"#, etag: "\"\(version)\"")
    }

    /// The member is sent back as `If-Match`, without quotes, as Eve's documentation says, or with them.
    @Test(arguments: ["etag", "/_etag"], ["", "\""]) func theMemberAsCondition(version: String, quote: String) async throws {
        let pool = try await pool(version)
        var tag = try #require(await pool.ask(.get, "/notes/1").json["_etag"]?.string)
        #expect(tag == "v1")
        for title in ["one", "two"] {
            let patch = await pool.tell(.patch, "/notes/1", #"{"title":"\#(title)"}"#, [.ifMatch: quote + tag + quote])
            #expect(patch.status == 202)
            let read = await pool.ask(.get, "/notes/1")
            tag = try #require(read.json["_etag"]?.string)
            #expect(read["ETag"] == "\"\(tag)\"" && tag.hasPrefix("loc-") && read.json["title"]?.string == title)
        }
        await pool.replay(Self.answer("v2"), Self.answer("v3"))
        let sent = pool.origin.sent.filter { $0.head.method == .patch }
        #expect(sent.map { $0.head.fields[.ifMatch] } == ["v1", "v2"].map { quote + $0 + quote })
        try await #expect(pool.states() == [.delivered, .delivered])
    }

    /// The member is sent back in the body.
    @Test(arguments: ["etag", "/_etag"]) func theMemberInTheBody(version: String) async throws {
        let pool = try await pool(version)
        for title in ["one", "two"] {
            let tag = try #require(await pool.ask(.get, "/notes/1").json["_etag"]?.string)
            let put = await pool.tell(.put, "/notes/1", #"{"id":1,"title":"\#(title)","_etag":"\#(tag)"}"#)
            #expect(put.status == 202)
        }
        await pool.replay(Self.answer("v2"), Self.answer("v3"))
        let sent = pool.origin.sent.filter { $0.head.method == .put }
        let versions = sent.map { (try? JSONValue.parse($0.body))?["_etag"]?.string }
        #expect(versions == ["v1", "v2"], "\(sent.map(\.text))")
        #expect(!sent.contains { $0.text.contains("loc-") })
    }

    /// A tag without quotes that is not the copy's is refused where the reply would stand in for the upstream's; the copy's is accepted, and
    /// reaches the upstream byte for byte.
    @Test func aTagWithoutQuotesIsCompared() async throws {
        let pool = try await pool(response: .optimistic)
        await #expect(pool.tell(.patch, "/notes/1", #"{"title":"x"}"#, [.ifMatch: "v0"]).status == 412)
        let patch = await pool.tell(.patch, "/notes/1", #"{"title":"x"}"#, [.ifMatch: "v1"])
        #expect(patch.status == 200 && patch.json["_etag"]?.string == "loc-1-v1", "\(patch.status) \(patch.body)")
        await pool.replay(Self.answer("v2"))
        #expect(pool.origin.sent.last { $0.head.method == .patch }?.head.fields[.ifMatch] == "v1")
    }
}
