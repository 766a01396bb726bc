// APIs that compress, and clients that accept it, as every browser does (docs/outbox.md#reads, docs/outbox.md#effects).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct CompressedAnswerTests {
    private static let browser: HTTPFields = [.acceptEncoding: "gzip, deflate, br, zstd"]
    private static let head = ResponseHead(
        status: 200, fields: [.contentType: "application/json", .cacheControl: "max-age=60", .vary: "Accept-Encoding", .eTag: "W/\"v1\""])

    private func holding(_ target: String = "/notes/1", _ body: String = #"{"id":1,"title":"sea"}"#) async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.gzip(Self.head, body))
        #expect(await pool.ask(.get, target, Self.browser)["Content-Encoding"] == "gzip")
        let known = ["gzip", "deflate", "br", "zstd"].filter(ContentCoding.decodable.contains).joined(separator: ", ")
        #expect(pool.origin.sent.last?.head.fields[.acceptEncoding] == known, "only what can be decoded is asked for")
        pool.clock.advance(by: .seconds(1))
        return pool
    }

    @Test func queuedWritesAreFoldedIntoACompressedItem() async throws {
        let pool = try await holding()
        pool.goOffline()
        #expect(await pool.tell(.patch, "/notes/1", #"{"title":"sky"}"#, Self.browser).status == 200)
        let shown = await pool.ask(.get, "/notes/1", Self.browser)
        #expect(shown.json == (try JSONValue.parse(Array(#"{"id":1,"title":"sky"}"#.utf8))))
        #expect(shown["Content-Encoding"] == nil && shown["Rockpool-State"] == "pending" && shown["Rockpool-Dirty"] == nil)
        #expect(await pool.tell(.delete, "/notes/1", nil, Self.browser).status == 204)
        #expect(await pool.ask(.get, "/notes/1", Self.browser).status == 404)
    }

    @Test func queuedWritesAreFoldedIntoACompressedList() async throws {
        let pool = try await holding("/notes", #"[{"id":1,"title":"sea"}]"#)
        pool.goOffline()
        #expect(await pool.tell(.post, "/notes", #"{"title":"new"}"#, Self.browser).status == 201)
        #expect(await pool.tell(.delete, "/notes/1", nil, Self.browser).status == 204)
        let shown = try #require(await pool.ask(.get, "/notes", Self.browser).json.array)
        #expect(shown.count == 1 && shown.first?.object?["title"] == .string("new"))
    }

    @Test func theAnswerToAQueuedWriteIsRead() async throws {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.goOffline()
        let local = try #require(await pool.tell(.post, "/notes", #"{"title":"new"}"#, Self.browser)["Rockpool-Local-Id"])
        let created = ResponseHead(status: 201, fields: [.contentType: "application/json", .location: "/notes/7"])
        await pool.replay(.gzip(created, #"{"id":7,"title":"new","rev":1}"#))
        #expect(pool.origin.sent.last?.head.fields[.acceptEncoding] == "identity")
        let mapping = LocalID(local).flatMap { pool.store.data.localIDs.mapping(of: $0) }
        #expect(mapping?.id == ServerID(text: "7", isNumber: true))
        let result = try #require(try await pool.all().first?.result)
        #expect(String(decoding: result.body, as: UTF8.self) == #"{"id":7,"title":"new","rev":1}"#)
        #expect(result.head.fields[.contentEncoding] == nil)
    }

    @Test func aPartThatFailedIsNoDelivery() async throws {
        let pool = try ScriptedEngine(upstreams: [.declared(.accepted)])
        pool.goOffline()
        await pool.tell(.post, "/notes", #"{"title":"new"}"#, Self.browser)
        let parts = ResponseHead(status: 207, fields: [.contentType: "application/json"])
        await pool.replay(.gzip(parts, #"[{"status":201},{"status":422}]"#))
        #expect(try await pool.states() == [.dead])
    }

    @Test func theAnswerToALiveWriteBecomesTheCopy() async throws {
        let pool = try await holding()
        let changed = ResponseHead(status: 200, fields: [.contentType: "application/json", .eTag: "\"v2\""])
        pool.origin.next(.gzip(changed, #"{"id":1,"title":"live","rev":2}"#))
        #expect(await pool.tell(.patch, "/notes/1", #"{"title":"live"}"#, Self.browser).status == 200)
        #expect(pool.origin.sent.last?.head.fields[.acceptEncoding] == "identity")
        pool.goOffline()
        let shown = await pool.ask(.get, "/notes/1", Self.browser)
        #expect(shown.json == (try JSONValue.parse(Array(#"{"id":1,"title":"live","rev":2}"#.utf8))))
        #expect(shown["ETag"] == "\"v2\"")
    }
}
