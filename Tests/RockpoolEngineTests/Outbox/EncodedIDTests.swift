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
