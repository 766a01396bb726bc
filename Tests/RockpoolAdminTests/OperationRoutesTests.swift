// The outbox over the admin API: steering, explaining and exporting operations (docs/reference/admin-api.md#operations).
import AdminPages
import GRDB
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@testable import RockpoolAdmin
@testable import RockpoolStore

@Suite(.timeLimit(.minutes(1)))
struct OperationRoutesTests {
    /// Returns an engine with an offline upstream, and the id of one pending write.
    private func waiting(_ body: String = #"{"title":"one"}"#, _ fields: HTTPFields = [:]) async throws -> (AdminDoor, String) {
        let pool = try ScriptedEngine(rule: { _ in .refused })
        pool.goOffline()
        var fields = fields
        fields[.contentType] = "application/json"
        let reply = await pool.ask(.patch, "/v1/notes/1", fields, body: body)
        return (AdminDoor(pool), try #require(reply["Rockpool-Operation"]))
    }

    @Test func anEditIsANewOperationInTheOldPlace() async throws {
        let (door, id) = try await waiting(#"{"title":"one"}"#, [.idempotencyKey: "\"mine\""])
        let path = "/v1/operations/\(id)"
        let old = try await door.ask(.get, path).json
        #expect(old["body"] == ["title": "one"] && old["headers"]?["content-type"] == "application/json" && old["attemptLog"] == [])
        let edited = try await door.ask(.patch, path, #"{"body": {"title": "two"}, "headers": {"If-Match": "\"7\""}}"#)
        #expect(edited.status == 201, "\(edited.text)")
        let new = edited.json
        #expect(new["fixes"]?.string == id && new["state"] == "pending" && new["lane"] == old["lane"] && new["body"] == ["title": "two"])
        #expect(new["idempotencyKey"] != old["idempotencyKey"] && new["idempotencyKey"]?.string?.contains("mine") == false)
        #expect(new["headers"]?["idempotency-key"] == nil && new["headers"]?["if-match"] == "\"7\"")
        let after = try await door.ask(.get, path).json
        #expect(
            after["state"] == "superseded" && after["reason"] == "edited" && after["supersededBy"] == new["id"] && after["waiting"] == .null
        )
        #expect(try await door.ask(.patch, path, #"{"method": "PUT"}"#).status == 409)
        let again = await door.pool.ask(
            .patch, "/v1/notes/1", [.contentType: "application/json", .idempotencyKey: "\"mine\""], body: #"{"title":"one"}"#)
        #expect(again["Rockpool-Operation"] == id, "the client's key still maps to the original operation")
    }

    @Test(arguments: [
        ("{}", 422, "changes nothing"), (#"{"url": "http://else.test/v1/notes/1"}"#, 422, "not the upstream"), ("[]", 400, "send {"),
        ("", 400, "send {"),
        (#"{"headers": {"Cookie": "a"}}"#, 422, "credential"), (#"{"titel": 1}"#, 422, "unknown member"),
    ])
    func anEditThatIsNoneChangesNothing(_ body: String, _ status: Int, _ words: String) async throws {
        let (door, id) = try await waiting()
        let answer = try await door.ask(.patch, "/v1/operations/\(id)", body)
        #expect(answer.status == status && answer.detail.contains(words), "\(answer.text)")
        #expect(try await door.ask(.get, "/v1/operations/\(id)").json["state"] == "pending")
        #expect(try await door.ask(.patch, "/v1/operations/nobody", #"{"method": "PUT"}"#).status == 404)
        #expect(try await door.ask(.patch, "/v1/operations/\(id)", body, token: nil).status == 401)
    }

    @Test func whyItWaitsIsSaid() async throws {
        let (door, id) = try await waiting()
        let second = await door.pool.ask(.patch, "/v1/notes/1", [.contentType: "application/json"], body: "{}")["Rockpool-Operation"]
        let items = try await door.ask(.get, "/v1/operations").json["items"]?.array ?? []
        #expect(items.map { $0["waiting"]?.string?.contains("notes is offline") } == [true, false])
        #expect(items.map { $0["blockedBy"]?["id"]?.string } == [nil, id])
        let status = await door.pool.ask(.get, "/.well-known/rockpool/operations/\(second ?? "")").json
        #expect(status["waiting"]?.string?.contains("earlier write") == true && status["blockedBy"] == nil && status["headers"] == nil)
    }

    /// The dashboard offers these and no others.
    @Test func whatIsAllowedIsListed() async throws {
        let (door, id) = try await waiting()
        func commands() async throws -> JSONValue? { try await door.ask(.get, "/v1/operations/\(id)").json["commands"] }
        try await #expect(commands() == ["retry", "cancel", "discard", "edit"])
        let listed = try await door.ask(.get, "/v1/operations").json["items"]?.array?.first?["commands"]
        try await #expect(commands() == listed)
        let (data, now) = (door.pool.store.data, door.pool.clock.now)
        _ = try await data.lease(id: id, now: now)
        try await #expect(commands() == [])
        _ = try await data.finish(
            id: id, disposition: Disposition(state: .pending), result: nil, attempt: .init(sent: .maybe), now: now)
        try await #expect(commands() == ["retry", "cancel", "discard"], "an edited PATCH could apply twice")
        try await #expect(door.ask(.patch, "/v1/operations/\(id)", #"{"body": {}}"#).status == 409)
        _ = try await data.transition(id: id, to: .dead, reason: .rejected, from: [.pending], now: now)
        try await #expect(commands() == ["retry", "discard", "edit"])
    }

    @Test func everyMemberIsDescribed() async throws {
        let (door, id) = try await waiting()
        let description = String(decoding: AdminPage.openAPI.bytes, as: UTF8.self)
        let schema = try #require(description.split(separator: "\n    Operation:\n").last?.split(separator: "\n    Edit:\n").first)
        let names = try await door.ask(.get, "/v1/operations/\(id)").json.object?.names ?? []
        #expect(names.count > 25)
        for name in names { #expect("\n\(schema)".contains("\n        \(name): "), "\(name)") }
    }

    @Test func cancelAndDiscardAndTheirWords() async throws {
        let (door, id) = try await waiting()
        let cancelled = try await door.ask(.post, "/v1/operations/\(id)/cancel")
        #expect(cancelled.status == 200 && cancelled.json["state"] == "cancelled" && cancelled.json["warning"] == nil)
        #expect(try await door.ask(.post, "/v1/operations/\(id)/cancel").status == 409)
        let (other, sent) = try await waiting()
        _ = try await other.pool.store.data.lease(id: sent, now: other.pool.clock.now)
        _ = try await other.pool.store.data.finish(
            id: sent, disposition: Disposition(state: .pending), result: nil, attempt: .init(sent: .maybe), now: other.pool.clock.now)
        let warned = try await other.ask(.post, "/v1/operations/\(sent)/cancel")
        #expect(warned.json["warning"]?.string?.contains("may have applied") == true)
    }

    @Test func aTreeIsListedBeforeItGoes() async throws {
        let (door, id) = try await waiting()
        let needy = await door.pool.ask(.put, "/v1/notes/2", [.contentType: "application/json"], body: "{}")["Rockpool-Operation"] ?? ""
        try await door.pool.store.data.queue.commit { db in
            let sql = "INSERT INTO op_dep SELECT a.seq, b.seq, 'explicit' FROM op AS a, op AS b WHERE a.id = ? AND b.id = ?"
            try db.execute(sql: sql, arguments: [needy, id])
        }
        let answer = try await door.ask(.delete, "/v1/operations/\(id)")
        #expect(answer.status == 409 && answer.json["dependants"]?.array?.map { $0["id"] } == [.string(needy)], "\(answer.text)")
        #expect(try await door.ask(.delete, "/v1/operations/\(id)?tree=perhaps").status == 400)
        #expect(try await door.ask(.delete, "/v1/operations/\(id)?tree=true").status == 204)
        for gone in [id, needy] {
            let operation = try await door.ask(.get, "/v1/operations/\(gone)").json
            #expect(operation["state"] == "cancelled" && operation["reason"] == "discarded")
        }
    }

    @Test func aLaneIsRetried() async throws {
        let (door, id) = try await waiting()
        let lane = try #require(try await door.ask(.get, "/v1/operations/\(id)").json["lane"]?.string)
        let encoded = lane.replacing(" ", with: "%20")
        #expect(try await door.ask(.post, "/v1/operations/retry?lane=\(encoded)").json == ["retried": [.string(id)], "uncertain": []])
        #expect(try await door.ask(.post, "/v1/operations/retry?lane=none").json["retried"] == [])
        #expect(try await door.ask(.post, "/v1/operations/retry").status == 400)
    }

    @Test func everythingIsWrittenOut() async throws {
        let (door, id) = try await waiting(#"{"title":"it's"}"#, [.authorization: "Bearer secret", .cookie: "a=secret"])
        _ = await door.pool.ask(.delete, "/v1/notes/2")
        let lines = try await door.ask(.get, "/v1/operations/export").text.split(separator: "\n").map {
            try JSONValue.parse(Array($0.utf8))
        }
        #expect(lines.count == 2 && lines.first?["id"]?.string == id && lines.first?["body"] == ["title": "it's"])
        let curl = try await door.ask(.get, "/v1/operations/export?format=curl").text
        #expect(curl.contains(#"--data-raw '{"title":"it'\''s"}'"#) && curl.contains("--request 'DELETE'"))
        let har = try await door.ask(.get, "/v1/operations/export?format=har&state=all").json
        #expect(har["log"]?["entries"]?.array?.count == 2)
        #expect(try await door.ask(.get, "/v1/operations/export?format=har&state=dead").json["log"]?["entries"] == [])
        for format in ["jsonl", "curl", "har"] {
            let text = try await door.ask(.get, "/v1/operations/export?format=\(format)").text
            #expect(!text.contains("secret"))
        }
        #expect(try await door.ask(.get, "/v1/operations/export?format=xml").status == 400)
    }

    @Test(arguments: ["jsonl", "curl", "har"]) func whatAURLHidesIsAskedFor(format: String) async throws {
        let (door, _) = try await waiting()
        _ = await door.pool.ask(.delete, "/v1/notes/2?access_token=s3cret&page=2")
        let path = "/v1/operations/export?format=\(format)"
        let text = try await door.ask(.get, path).text
        #expect(!text.contains("s3cret") && text.contains("access_token=REDACTED&page=2"))
        #expect(try await door.ask(.get, path + "&secrets=true").text.contains("access_token=s3cret&page=2"))
    }

    /// Fields of the request, and of the answer that a delivered write keeps.
    @Test(arguments: ["", "?state=all", "/export?state=all&format=jsonl", "/export?state=all&format=curl", "/export?state=all&format=har"])
    func secretsOfFieldsAreNotShown(place: String) async throws {
        let next = try #require(HTTPField.Name("X-Next"))
        let (door, id) = try await waiting(#"{"title":"one"}"#, [next: "https://ann:s3cret@a.test/x?sig=s3cret&page=2"])
        let (key, link) = (try #require(HTTPField.Name("X-Api-Key")), try #require(HTTPField.Name("Link")))
        let answer: HTTPFields = [
            key: "s3cret", .setCookie: "a=s3cret", .location: "/n?token=s3cret", link: "</n?page=2>, </n?key=s3cret>",
        ]
        let data = door.pool.store.data
        _ = try #require(try await data.lease(id: id, now: door.pool.clock.now))
        _ = try await data.finish(
            id: id, disposition: Disposition(state: .delivered),
            result: OperationResult(head: ResponseHead(status: 200, fields: answer), body: []),
            attempt: AttemptRecord(sent: .yes), now: door.pool.clock.now)
        let text = try await door.ask(.get, "/v1/operations" + (place.isEmpty ? "/\(id)" : place)).text
        #expect(!text.contains("s3cret") && text.contains("notes"), "\(text)")
        #expect(try await data.operation(id: id)?.result?.head.fields == answer)
    }

    @Test func purgesAreAnnounced() async throws {
        let (door, id) = try await waiting()
        _ = try await door.pool.store.data.transition(id: id, to: .dead, reason: .expired, from: [.pending], now: door.pool.clock.now)
        #expect(try await door.ask(.get, "/v1/operations/\(id)").json["purgeAt"] == .null)
        door.pool.clock.advance(by: .days(26))
        let moment = try await door.ask(.get, "/v1/operations/\(id)").json["purgeAt"]
        #expect(moment?.string != nil)
        let stats = try await door.ask(.get, "/v1/stats").json["outbox"]
        #expect(stats?["purgeSoon"] == 1 && stats?["nextPurgeAt"] == moment)
    }
}
