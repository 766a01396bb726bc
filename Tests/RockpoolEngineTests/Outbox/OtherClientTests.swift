// Two clients of one gateway: the write of one leaves what the other has seen (docs/outbox.md#base).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct OtherClientTests {
    private static let ann: HTTPFields = [.authorization: "Bearer ann"]
    private static let ben: HTTPFields = [.authorization: "Bearer ben"]
    private static let before = #"{"id":1,"a":0,"b":0}"#
    private static let after = #"{"id":1,"a":0,"b":1}"#

    /// Returns an engine through which one client has changed the item since the other has read it.
    private func changed() async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.json(Self.before, etag: "\"v1\""))
        await pool.ask(.get, "/notes/1", Self.ann)
        pool.clock.advance(by: .seconds(1))
        pool.origin.next(.json(Self.after, etag: "\"v2\""))
        #expect(await pool.tell(.patch, "/notes/1", #"{"b":1}"#, Self.ben).status == 200)
        pool.clock.advance(by: .seconds(1))
        return pool
    }

    @Test(arguments: ["\"v1\"", nil])
    func whatAClientHasReadStaysItsBase(condition: String?) async throws {
        let pool = try await changed()
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/1", Self.ann).body == Self.before)
        var fields = Self.ann
        fields[.ifMatch] = condition
        #expect(await pool.tell(.patch, "/notes/1", #"{"a":1}"#, fields).status == 200)
        let write = try #require(try await pool.all().last)
        #expect(write.baseETag == (condition == nil ? "\"v1\"" : nil))
        #expect(try await pool.store.data.base(of: write.sequence)?.body == Array(Self.before.utf8))
    }

    @Test func aLiveWriteNamesTheVersionThatItsClientHasRead() async throws {
        let pool = try await changed()
        pool.origin.next(.status(422))
        await pool.tell(.patch, "/notes/1", #"{"a":1}"#, Self.ann)
        #expect(pool.origin.sent.last?.head.fields[.ifMatch] == "\"v1\"")
    }

    @Test func theOthersCopyIsValidated() async throws {
        let pool = try await changed()
        pool.origin.next(.json(Self.after, etag: "\"v2\""))
        #expect(await pool.ask(.get, "/notes/1", Self.ann).body == Self.after)
    }
}
