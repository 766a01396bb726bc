// Rules for the media type of a change's body and of every reply's body (docs/security-model.md#admin-callers,
// docs/security-model.md#dashboard).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolAdmin

@Suite struct AdminGuardTests {
    private func change(_ target: String, _ fields: HTTPFields, _ body: String = #"{"dryRun": true}"#) async throws -> AdminDoor.Answer {
        try await AdminDoor(ScriptedEngine()).ask(.post, target, body: [ByteBuffer(string: body)], fields: fields)
    }

    @Test(arguments: [
        nil, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain; application/json", "",
        "application/warc",
    ])
    func aBodyOfAnotherTypeIsRefused(_ type: String?) async throws {
        for framing in [HTTPField(name: .contentLength, value: "16"), HTTPField(name: .transferEncoding, value: "chunked")] {
            var fields: HTTPFields = [.contentType: "application/json"]
            fields[.contentType] = type
            fields.append(framing)
            let answer = try await change("/v1/storage/cleanup", fields)
            #expect(answer.status == 415 && answer.detail.contains("application/json"), "\(answer.text)")
            #expect(answer.json["type"] == "urn:rockpool:problem:unsupported-media-type")
        }
    }

    @Test(arguments: ["application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"])
    func jsonIsTaken(_ type: String) async throws {
        let answer = try await change("/v1/storage/cleanup", [.contentType: type, .contentLength: "16"])
        #expect(answer.status == 200, "\(answer.text)")
    }

    @Test func withoutABodyNoTypeIsAskedFor() async throws {
        for fields: HTTPFields in [[:], [.contentLength: "0"], [.contentLength: "0", .contentType: "text/plain"]] {
            try await #expect(change("/v1/operations/flush", fields, "").status == 200)
        }
    }

    @Test func aBundleIsNoJSON() async throws {
        let refused = try await change("/v1/cache/import", [.contentType: "text/plain", .contentLength: "4"], "PK\u{3}\u{4}")
        #expect(refused.status == 415 && refused.detail.contains("application/warc"))
        let taken = try await change("/v1/cache/import", [.contentType: "application/warc", .contentLength: "4"], "PK\u{3}\u{4}")
        #expect(taken.status == 400 && taken.detail.hasPrefix("record 1"))
    }

    @Test func whoMayNotChangeHearsThatFirst() async throws {
        let answer = try await AdminDoor(ScriptedEngine()).ask(
            .post, "/v1/storage/cleanup", body: [ByteBuffer(string: "x")], token: nil, fields: [.contentLength: "1"])
        #expect(answer.status == 401)
    }

    @Test func twoHostsAreRefused() async throws {
        let answer = try await AdminDoor(ScriptedEngine()).ask(
            .get, "/v1/status", body: [ByteBuffer](), fields: [.hostField: "127.0.0.1:7626"])
        #expect(answer.status == 400 && answer.detail == "more than one Host")
    }

    @Test(arguments: ["/", "/healthz", "/v1/status", "/v1/operations", "/metrics", "/nothing", "/v1/storage/cleanup", "/proxy.pac"])
    func nobodyGuessesWhatAReplyIs(_ target: String) async throws {
        let answer = try await AdminDoor(ScriptedEngine()).ask(.get, target, token: nil)
        #expect(answer.fields[.xContentTypeOptions] == "nosniff", "\(answer.status) \(answer.fields)")
    }
}
