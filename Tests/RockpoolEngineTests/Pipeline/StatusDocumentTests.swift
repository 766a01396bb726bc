// The status document of a queued write: lookup, waiting, and the format of the contract (docs/reference/behaviour.md#status-document–§5).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct StatusDocumentTests {
    private func queued() async throws -> (pool: ScriptedEngine, path: String) {
        let pool = try ScriptedEngine()
        pool.goOffline()
        let path = try #require(await pool.ask(.put, "/notes/1", body: "x")["Location"])
        return (pool, path)
    }

    @Test func anOpenOperationIsShownWithWhenToAskAgain() async throws {
        let (pool, path) = try await queued()
        let document = await pool.ask(.get, path, origin: OriginAddress(scheme: .https, host: "any.test"))
        #expect(document.status == 200 && document["Rockpool-State"] == "pending" && document["Retry-After"] == "2")
        #expect(document.json["state"] == "pending" && document.json["url"] == "http://api.test/notes/1")
        #expect(document["Cache-Control"] == "no-store")
        #expect(pool.origin.sent.isEmpty, "the engine answers it itself, on every authority")
    }

    @Test func aDeliveredOneShowsItsResult() async throws {
        let (pool, path) = try await queued()
        pool.comeOnline()
        pool.origin.next(.status(200, [.contentType: "application/json"], #"{"id":7}"#))
        #expect(await Replayer(engine: pool.engine).runOnce().delivered == 1)
        let document = await pool.ask(.get, path + "?wait=30")
        #expect(document["Rockpool-State"] == "delivered" && document["Retry-After"] == nil)
        #expect(document.json["result"]?["status"] == 200)
        #expect(document.json["result"]?["body"]?["id"] == 7)
    }

    @Test func waitingEndsWhenTheOperationDoes() async throws {
        let (pool, path) = try await queued()
        async let document = pool.ask(.get, path + "?wait=30")
        pool.comeOnline()
        #expect(await Replayer(engine: pool.engine).runOnce().delivered == 1)
        #expect(await document.json["state"] == "delivered")
    }

    /// Every other client gets a 404.
    @Test(arguments: [IdentityRule.auto, .single, .cookie("sid")]) func itIsItsSendersOwn(rule: IdentityRule) async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.identity = rule }])
        pool.goOffline()
        let own: HTTPFields = rule == .cookie("sid") ? [.cookie: "sid=a; theme=x"] : [.authorization: "Bearer a"]
        let again: HTTPFields = rule == .cookie("sid") ? [.cookie: "sid=a; theme=y"] : [.authorization: "Bearer a", .cookie: "theme=y"]
        let path = try #require(await pool.ask(.put, "/notes/1", own, body: "x")["Location"])
        let proxy = OriginAddress(scheme: .http, host: "127.0.0.1", port: 7625)
        #expect(await pool.ask(.get, path, again, origin: proxy).status == 200)
        for other in [[:], [.authorization: "Bearer b"], [.cookie: "sid=b"]] as [HTTPFields] {
            #expect(await pool.ask(.get, path, other).status == (rule == .single ? 200 : 404))
        }
    }

    @Test(arguments: [
        ("/.well-known/rockpool/operations/nope", HTTPRequest.Method.get, 404), ("/.well-known/rockpool/operations/", .get, 404),
        ("/.well-known/rockpool/other", .get, 404), ("/.well-known/rockpool/operations/nope", .delete, 405),
        ("/.well-known/rockpool/operations/nope?wait=x", .get, 404),
    ])
    func whatIsNotThereIsAProblemOfOurs(target: String, method: HTTPRequest.Method, status: Int) async throws {
        let pool = try ScriptedEngine()
        #expect(await pool.ask(method, target).status == status)
        #expect(pool.origin.sent.isEmpty)
    }

    @Test func headHasTheLengthAndNoBody() async throws {
        let (pool, path) = try await queued()
        let reply = await pool.engine.respond(Exchange(request: RequestHead(method: .head, origin: .notes, target: path)))
        guard case .none(let length) = reply.body else { return #expect(Bool(false), "a body") }
        #expect(try #require(length) > 100)
    }
}

struct OperationDocumentTests {
    private func operation(_ change: (inout QueuedWrite) -> Void = { _ in }) -> QueuedWrite {
        let moment = Timestamp(seconds: 1_767_225_600)
        var operation = QueuedWrite(
            sequence: 1, id: "01", request: RequestHead(method: .post, origin: .notes, target: "/notes"), body: .none, upstream: "notes",
            lane: "notes /notes", idempotencyKey: "k", acceptedAt: moment, nextAttemptAt: moment)
        change(&operation)
        return operation
    }

    @Test func everyNameOfTheContractIsThere() {
        let json = OperationDocument.json(of: operation())
        for name in [
            "id", "state", "reason", "method", "url", "upstream", "entity", "lane", "idempotencyKey", "attempts", "acceptedAt",
            "nextAttemptAt", "lastError", "priority", "dependsOn", "localId", "serverId", "result",
        ] { #expect(json[name] != nil, "\(name)") }
        #expect(json["acceptedAt"] == "2026-01-01T00:00:00.000Z")
    }

    @Test(arguments: OperationState.allCases)
    func onlyWhatWillBeTriedAgainSaysWhen(state: OperationState) {
        let json = OperationDocument.json(of: operation { $0.state = state })
        #expect((json["nextAttemptAt"] != .null) == (state == .pending || state == .uncertain))
        #expect(json["state"] == .string(state.rawValue))
    }

    @Test func attemptsAreAllOfThem() {
        #expect(OperationDocument.json(of: operation { ($0.answeredAttempts, $0.networkAttempts) = (2, 3) })["attempts"] == 5)
    }

    @Test(
        arguments: [
            ([], .null), (Array(#"{"a":1}"#.utf8), ["a": 1]), (Array("text".utf8), "text"), ([0xFF, 0xFE], .null),
        ] as [([UInt8], JSONValue)])
    func aResultsBodyIsJSONTextOrNothing(bytes: [UInt8], shown: JSONValue) {
        let json = OperationDocument.json(of: operation { $0.result = OperationResult(head: ResponseHead(status: 200), body: bytes) })
        #expect(json["result"]?["body"] == shown)
    }
}
