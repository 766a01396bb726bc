// Conditions with dates on representations that were made here: they never hide a write of the client (RFC 9111 §4.3.2, docs/outbox.md#reads).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct DateConditionTests {
    /// Later than every date of a representation, as of a client whose upstream's clock is ahead.
    private static let since: HTTPFields = [.ifModifiedSince: "Fri, 01 Jan 2027 00:00:00 GMT"]
    private static let dates: HTTPFields = [
        .date: "Thu, 01 Jan 2026 00:00:00 GMT", .lastModified: "Thu, 01 Jan 2026 00:00:00 GMT", .cacheControl: "max-age=60",
    ]

    /// Returns an engine that has stored an item, a list and a file with dates as their only validators, and is offline.
    private func pool(isDated: Bool) async throws -> ScriptedEngine {
        var fields = Self.dates
        if !isDated { fields[.lastModified] = nil }
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.json(#"{"id":1,"title":"sea"}"#, fields), .json(#"[{"id":1,"title":"sea"}]"#, fields))
        fields[.contentType] = "text/plain"
        pool.origin.next(.ok("sea", fields))
        for target in ["/notes/1", "/notes", "/files/a.txt"] { await pool.ask(.get, target) }
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        return pool
    }

    @Test(arguments: ["/notes/1", "/notes", "/files/a.txt"], [true, false])
    func aQueuedWriteIsShown(target: String, isDated: Bool) async throws {
        let pool = try await pool(isDated: isDated)
        #expect(await pool.ask(.get, target, Self.since).status == 304, "what the upstream has sent")
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        await pool.ask(.put, "/files/a.txt", [.contentType: "text/plain"], body: "mine")
        let reply = await pool.ask(.get, target, Self.since)
        #expect(reply.status == 200 && reply.body.contains("mine"), "\(reply.head)")
        let tag = try #require(reply["ETag"])
        #expect(await pool.ask(.get, target, [.ifNoneMatch: tag]).status == 304)
    }

    /// The copy that was made of an answered write has no dates of the one before it.
    @Test(arguments: ["/notes/1", "/notes", "/files/a.txt"], [true, false])
    func anAnsweredWriteIsShown(target: String, isDated: Bool) async throws {
        let pool = try await pool(isDated: isDated)
        pool.comeOnline()
        pool.origin.answers { $0.head.method == .get ? .refused : .status(204) }
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        await pool.ask(.put, "/files/a.txt", [.contentType: "text/plain"], body: "mine")
        pool.goOffline()
        let reply = await pool.ask(.get, target, Self.since)
        #expect(reply.status == 200 && reply.body.contains("mine"), "\(reply.head)")
    }
}
