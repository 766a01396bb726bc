// Prefetching, and bundles over the admin API (docs/reference/admin-api.md#bundles).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolAdmin

@Suite(.timeLimit(.minutes(1)))
struct BundleRoutesTests {
    @Test func prefetchTellsOfEach() async throws {
        let pool = try ScriptedEngine(rule: { sent in sent.head.target == "/no" ? .ok("x", [.cacheControl: "no-store"]) : .ok() })
        let body = #"{"urls": ["http://api.test/a", "http://api.test/no"], "pin": true, "headers": {"Accept-Language": "de"}}"#
        let answer = try await AdminDoor(pool).ask(.post, "/v1/cache/prefetch", body)
        #expect(answer.status == 200 && answer.json["stored"] == 1)
        let until = answer.json["items"]?.array?.first?["offlineUntil"] ?? .null
        let stored: JSONValue = [
            "url": "http://api.test/a", "status": 200, "stored": true, "reason": .null, "bytes": 5, "pinned": true, "offlineUntil": until,
        ]
        #expect(answer.json["items"]?.array?.first == stored && until.string.flatMap { RFC3339.parse($0) } != nil)
        #expect(answer.json["items"]?.array?.last?["offlineUntil"] == .null)
        #expect(answer.json["items"]?.array?.last?["reason"] == "no-store" && answer.json["items"]?.array?.last?["pinned"] == false)
        #expect(pool.origin.sent.allSatisfy { $0.head.fields[.acceptLanguage] == "de" })
    }

    static let wishes: [(String, String)] = [
        ("", "urls holds 1 to 1000 URLs, not 0"), ("[]", "send {"), ("{", "send {"), (#"{"urls": "x"}"#, "urls is a list of URLs"),
        (#"{"urls": [1]}"#, "urls is a list of URLs"), (#"{"urls": []}"#, "urls holds 1 to 1000 URLs, not 0"),
        (#"{"urls": [\#(Array(repeating: #""http://api.test/""#, count: 1001).joined(separator: ","))]}"#, "not 1001"),
        (#"{"urls": ["http://api.test/"], "pin": 1}"#, "pin is true or false"),
        (#"{"urls": ["x"], "pinned": true}"#, "unknown member pinned"),
        (#"{"urls": ["http://api.test/"], "headers": []}"#, "headers is an object"),
        (#"{"urls": ["http://api.test/"], "headers": {"A b": "c"}}"#, "headers is an object"),
        (#"{"urls": ["http://api.test/"], "headers": {"A": "b\nc"}}"#, "the value of A has characters not allowed in a field"),
    ]

    @Test(arguments: wishes) func aWishThatIsNoneFetchesNothing(body: String, detail: String) async throws {
        let pool = try ScriptedEngine()
        let answer = try await AdminDoor(pool).ask(.post, "/v1/cache/prefetch", body)
        #expect(answer.status == 400 && answer.detail.contains(detail), "\(answer.text)")
        #expect(pool.origin.sent.isEmpty)
    }

    @Test func shapesHaveNoValues() async throws {
        let json: HTTPFields = [.contentType: "application/json", .cacheControl: "max-age=60"]
        let list = #"{"data": [{"id": 7, "title": "low"}, {"id": 8}], "next": null, "tags": ["a"]}"#
        let door = AdminDoor(try ScriptedEngine(rule: { _ in .ok(list, json) }))
        await door.pool.ask(.get, "/notes?page=1")
        let answer = try await door.ask(.post, "/v1/cache/shapes?prefix=http://api.test/")
        let shape: JSONValue = ["data": [["id": .null, "title": .null]], "next": .null, "tags": [.null]]
        #expect(answer.json == ["items": [["path": "/notes", "shape": shape]], "next": .null, "unread": 0], "\(answer.text)")
        #expect(try await door.ask(.post, "/v1/cache/shapes", token: nil).status == 401)
    }

    @Test func outAndInAgain() async throws {
        let here = AdminDoor(try ScriptedEngine())
        for target in ["/a", "/b"] { await here.pool.ask(.get, target) }
        let bundle = try await here.ask(.get, "/v1/cache/export?prefix=http://api.test/a")
        #expect(bundle.text.hasPrefix("WARC/1.1\r\n"))
        let there = AdminDoor(try ScriptedEngine(rule: { _ in .refused }))
        let pieces = Array(bundle.text.utf8).chunks(of: 100).map { ByteBuffer(bytes: $0) }
        let report = try await there.ask(.post, "/v1/cache/import", body: pieces)
        #expect(report.json == ["imported": 1, "bytes": 5, "skippedCount": 0, "skipped": []])
        #expect(await there.pool.ask(.get, "/a").body == "pearl")
        let again = try await there.ask(.post, "/v1/cache/import", body: pieces).json
        #expect(again["skippedCount"] == 1 && again["skipped"]?.array?.first?["reason"] == "already stored")
    }

    @Test func aFileThatIsNoneIsRefused() async throws {
        let door = AdminDoor(try ScriptedEngine())
        let answer = try await door.ask(.post, "/v1/cache/import", "PK\u{3}\u{4}")
        #expect(answer.status == 400 && answer.detail == "record 1: it does not start with WARC/1.; 0 entries before it were imported")
        #expect(
            try await door.ask(.post, "/v1/cache/import", "").detail == "record 1: the file is empty; 0 entries before it were imported")
    }
}

extension [UInt8] {
    fileprivate func chunks(of size: Int) -> [ArraySlice<UInt8>] {
        stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
    }
}
