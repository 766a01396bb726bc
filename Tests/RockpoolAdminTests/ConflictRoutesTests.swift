// Conflicts over the admin API: listing, details, and refusal of invalid commands (docs/reference/admin-api.md#conflicts).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@testable import RockpoolAdmin

@Suite(.timeLimit(.minutes(1)))
struct ConflictRoutesTests {
    /// Returns an offline pool with a write of `/v1/notes/N` for each outcome, and its conflict `cN`; the outcome nil leaves it open.
    private func door(_ outcomes: [Conflict.Resolution?]) async throws -> AdminDoor {
        let pool = try ScriptedEngine(rule: { _ in .refused })
        pool.goOffline()
        for (number, outcome) in zip(1..., outcomes) {
            let path = "/v1/notes/\(number)"
            let reply = await pool.ask(.put, path, [.contentType: "application/json"], body: #"{"n":2}"#)
            let operation = try #require(reply["Rockpool-Operation"])
            let conflict = Conflict(
                id: "c\(number)", operation: operation, sequence: Int64(number), upstream: "notes", url: "http://api.test\(path)",
                entity: path,
                kind: .editEdit, strategy: .ask, detection: .strong, base: side(#"{"n":1}"#), mine: side(#"{"n":2}"#),
                theirs: side(#"{"n":3.0}"#), result: nil,
                fields: [
                    MergedField(pointer: JSONPointer(tokens: ["n"]), base: 1, mine: 2, theirs: 3, merged: nil, isConflicting: true)
                ], openedAt: pool.clock.now, resolution: outcome)
            _ = try await pool.store.data.meet(conflict, decision: outcome.map { _ in .yield }, now: pool.clock.now)
        }
        return AdminDoor(pool)
    }

    private func side(_ json: String) -> Conflict.Side {
        Conflict.Side(body: Array(json.utf8), contentType: "application/json", etag: "\"1\"")
    }

    private func ids(_ door: AdminDoor, _ query: String = "") async throws -> [String] {
        try await door.ask(.get, "/v1/conflicts\(query)", token: nil).json["items"]?.array?.compactMap { $0["id"]?.string } ?? []
    }

    @Test func listsShowWhatWaitsUnlessToldOtherwise() async throws {
        let door = try await door([nil, .theirs, nil])
        #expect(try await ids(door) == ["c3", "c1"])
        for (query, expected) in [
            ("?state=open", ["c3", "c1"]), ("?state=closed", ["c2"]), ("?state=all", ["c3", "c2", "c1"]), ("?entity=/v1/notes/1", ["c1"]),
            ("?state=all&entity=/v1/notes/2", ["c2"]), ("?upstream=notes", ["c3", "c1"]), ("?upstream=others&state=all", []),
        ] {
            #expect(try await ids(door, query) == expected, "\(query)")
        }
        let first = try await door.ask(.get, "/v1/conflicts?state=all&limit=2").json
        #expect(first["items"]?.array?.map { $0["fields"] } == [nil, nil] && first["items"]?.array?.first?["base"] == nil)
        let next = try #require(first["next"]?.string)
        let second = try await door.ask(.get, "/v1/conflicts?state=all&limit=2&cursor=\(next)").json
        #expect(second["items"]?.array?.map { $0["id"] } == ["c1"] && second["next"] == .null)
    }

    @Test(arguments: ["state=parked", "state=", "limit=0", "limit=1001", "cursor=x", "cursor=0", "status=open"])
    func aQueryThatIsNoneIsRefused(_ query: String) async throws {
        #expect(try await door([]).ask(.get, "/v1/conflicts?\(query)").status == 400)
    }

    @Test func oneIsShownWholeAndItsOperationPointsToIt() async throws {
        let door = try await door([nil, .theirs])
        let open = try await door.ask(.get, "/v1/conflicts/c1", token: nil).json
        #expect(open["base"] == ["n": 1] && open["mine"] == ["n": 2] && open["theirs"]?.serialized() == Array(#"{"n":3.0}"#.utf8))
        #expect(open["merged"] == .null && open["fields"]?.array?.first?["conflicting"] == true && open["closedAt"] == .null)
        let closed = try await door.ask(.get, "/v1/conflicts/c2").json
        #expect(closed["resolution"] == "theirs" && closed["decidedBy"] == "strategy" && closed["closedAt"] == closed["openedAt"])
        for (document, conflict, state) in [(open, "c1", "conflicted"), (closed, nil, "superseded")] {
            let operation = try await door.ask(.get, "/v1/operations/\(document["operation"]?.string ?? "")").json
            #expect(operation["conflict"] == .optional(conflict) && operation["state"]?.string == state)
        }
    }

    @Test func whatWaitsIsCounted() async throws {
        let door = try await door([nil, .theirs, nil])
        #expect(try await door.ask(.get, "/v1/status").json["conflicts"] == 2)
    }

    @Test(arguments: [
        ("{}", 422, "resolution is"), (#"{"resolution": "mine", "why": "x"}"#, 422, "unknown member why"), ("[]", 400, "send {"),
        ("{", 400, "send {"),
    ])
    func aResolutionThatIsNoneDecidesNothing(_ body: String, _ status: Int, _ words: String) async throws {
        let door = try await door([nil])
        let answer = try await door.ask(.post, "/v1/conflicts/c1/resolve", body)
        #expect(answer.status == status && answer.detail.contains(words), "\(answer.text)")
        #expect(try await ids(door) == ["c1"])
    }

    @Test func changesNeedTheTokenAndAConflict() async throws {
        let door = try await door([nil])
        for path in ["/v1/conflicts/c1/resolve", "/v1/conflicts/c1/undo"] {
            #expect(try await door.ask(.post, path, #"{"resolution": "mine"}"#, token: nil).status == 401)
        }
        for (method, path) in [
            (HTTPRequest.Method.get, "/v1/conflicts/none"), (.post, "/v1/conflicts/none/resolve"), (.post, "/v1/conflicts/none/undo"),
        ] {
            let answer = try await door.ask(method, path, #"{"resolution": "mine"}"#)
            #expect(answer.status == 404 && answer.detail == "no conflict none", "\(answer.text)")
        }
        let refused = try await door.ask(.post, "/v1/conflicts/c1/undo")
        #expect(refused.status == 409 && refused.json["type"] == "urn:rockpool:problem:conflict", "\(refused.text)")
    }
}
