// Ids that are percent-encoded in paths, as e-mail addresses and dates are (RFC 3986 §2.1; docs/outbox.md#reads).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct EncodedIDTests {
    private func holdingList() async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [.declared()]) { request in
            switch request.head.method {
            case .put: .json(request.text)
            default: .json(request.head.target == "/notes" ? #"[{"id":"ann@x.org","t":"old"}]"# : #"{"id":"ann@x.org","t":"old"}"#)
            }
        }
        await pool.ask(.get, "/notes")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        return pool
    }

    @Test(arguments: ["/notes/ann%40x.org", "/notes/ann@x.org"])
    func anItemOfAListIsFoundUnderEitherSpelling(target: String) async throws {
        let pool = try await holdingList()
        #expect(await pool.ask(.get, target).body == #"{"id":"ann@x.org","t":"old"}"#)
    }

    @Test func aWriteChangesTheListedItem() async throws {
        let pool = try await holdingList()
        let reply = await pool.tell(.put, "/notes/ann%40x.org", #"{"id":"ann@x.org","t":"new"}"#)
        #expect(reply.status == 200 && reply.body == #"{"id":"ann@x.org","t":"new"}"#)
        #expect(await pool.ask(.get, "/notes").body == #"[{"id":"ann@x.org","t":"new"}]"#)
        await pool.replay()
        #expect(pool.origin.lines.last == "PUT /notes/ann%40x.org")
        #expect(try await pool.states() == [.delivered])
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        #expect(await pool.tell(.delete, "/notes/ann%40x.org").status == 204)
        #expect(await pool.ask(.get, "/notes").body == "[]")
    }
}

/// A version in a member of the representation, in place of an ETag (docs/outbox.md#detection).
@Suite(.timeLimit(.minutes(1)))
struct MemberVersionTests {
    /// The upstream adds members of its own to each answer, which the client has not seen.
    @Test func aDeleteAfterAnOwnWriteOfTheSameOutageIsNoConflict() async throws {
        let pool = try ScriptedEngine(upstreams: [.declared(version: "/rev")])
        pool.origin.next(.json(#"{"id":1,"a":0,"rev":5}"#))
        await pool.ask(.get, "/notes/1")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        #expect(await pool.tell(.patch, "/notes/1", #"{"a":1}"#).status == 200)
        #expect(await pool.tell(.delete, "/notes/1").status == 204)
        let changed = #"{"id":1,"a":1,"rev":6,"owner":"ann"}"#
        await pool.replay(
            .json(#"{"id":1,"a":0,"rev":5}"#), .json(changed), .json(changed), .status(204))
        #expect(try await pool.states() == [.delivered, .delivered])
    }
}

/// Creates with answers that show the new id in `Location` only: it has the type of the collection's ids (docs/outbox.md#local-ids).
@Suite(.timeLimit(.minutes(1)))
struct NumericIDTests {
    private static func located(_ id: String) -> ScriptedAnswer { .status(201, [.location: "/notes/\(id)"]) }

    private func holding(_ target: String, _ body: String) async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.json(body))
        await pool.ask(.get, target)
        pool.clock.advance(by: .seconds(1))
        return pool
    }

    @Test(arguments: [
        ("/notes", #"[{"id":50},{"id":51}]"#, "62", #"{"parent":62}"#), ("/notes/50", #"{"id":50}"#, "62", #"{"parent":62}"#),
        ("/notes", #"[{"id":50},{"id":"x"}]"#, "62", #"{"parent":"62"}"#), ("/notes", #"[{"id":"50"}]"#, "62", #"{"parent":"62"}"#),
        ("/notes", "[]", "62", #"{"parent":"62"}"#), ("/notes", #"[{"id":50}]"#, "x62", #"{"parent":"x62"}"#),
        ("/notes", #"[{"id":50}]"#, "062", #"{"parent":"062"}"#),
    ])
    func aReferenceHasTheTypeOfTheStoredIDs(target: String, body: String, id: String, sent: String) async throws {
        let pool = try await holding(target, body)
        pool.goOffline()
        let local = try #require(await pool.tell(.post, "/notes", #"{"a":0}"#)["Rockpool-Local-Id"])
        await pool.tell(.post, "/notes", #"{"parent":"\#(local)"}"#)
        await pool.replay(Self.located(id), Self.located("99"))
        #expect(pool.origin.sent.last?.text == sent)
    }

    @Test func listsShowOneTypeAfterALiveCreate() async throws {
        let pool = try await holding("/notes", #"[{"id":50}]"#)
        pool.origin.next(Self.located("61"))
        #expect(await pool.tell(.post, "/notes", #"{"a":0}"#).status == 201)
        pool.goOffline()
        let shown = try #require(await pool.ask(.get, "/notes").json.array)
        #expect(shown.map { $0.object?["id"] } == [.number(JSONNumber(50)), .number(JSONNumber(61))])
        #expect(await pool.ask(.get, "/notes/61").json.object?["id"] == .number(JSONNumber(61)))
    }
}
