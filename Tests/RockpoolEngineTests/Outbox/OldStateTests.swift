// Copies of undeclared paths that lack a write of their client say so while the upstream is away (docs/outbox.md#files-and-collections).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct OldStateTests {
    /// A path that was read, a write to another or the same one, and whether the copy then lacks it.
    private static let kinds: [(read: String, write: String, isOld: Bool)] = [
        ("/a/", "POST /a/b", true), ("/a", "POST /a/b/c", true), ("/", "PUT /a/b", true), ("/a/?list", "DELETE /a/b", true),
        ("/a/", "PATCH /a/b?x=1", true), ("/a/b/", "PUT /a/b/c/d/e", true),
        ("/b/", "MOVE /a/x /b/x", true), ("/a/", "MOVE /a/x /b/x", true), ("/b", "COPY /a/x /b/x", true), ("/a/", "MKCOL /a/new", true),
        ("/a", "PATCH /a", true), ("/a", "POST /a", true), ("/a?x=1", "POST /a", true), ("/a", "POST /a?x=1", true),
        ("/a?y", "POST /a?x=1", true),
        ("/a", "PUT /a?x=1", true), ("/a?x", "PUT /a", true), ("/a", "DELETE /a?x", true), ("/a/", "POST /a", true),
        ("/a", "POST /a/", true),
        ("/a/b", "POST /a", false), ("/ab", "POST /a/b", false), ("/a/c", "POST /a/b", false), ("/A/", "POST /a/b", false),
        ("/c/", "MOVE /a/x /b/x", false),
    ]

    private func pool(
        _ rule: @escaping ScriptedOrigin.Rule = { _ in .ok("old", [.eTag: "\"1\"", .contentType: "text/plain"]) }
    ) throws
        -> ScriptedEngine
    {
        try ScriptedEngine(rule: rule)
    }

    /// Sends a write that is given as `METHOD PATH`, or `METHOD PATH DESTINATION`.
    private func tell(_ pool: ScriptedEngine, _ write: String) async throws -> WholeReply {
        let words = write.split(separator: " ").map { String($0) }
        var fields = HTTPFields()
        if words.count > 2 { fields[try #require(HTTPField.Name("Destination"))] = words[2] }
        let hasBody = ["POST", "PUT", "PATCH"].contains(words[0])
        if hasBody { fields[.contentType] = "text/plain" }
        return await pool.ask(try #require(HTTPRequest.Method(words[0])), words[1], fields, body: hasBody ? "new" : nil)
    }

    @Test(arguments: kinds) func aCopyBesideAQueuedWrite(read: String, write: String, isOld: Bool) async throws {
        let pool = try pool()
        await pool.ask(.get, read)
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        #expect(await pool.ask(.get, read)["Rockpool-Dirty"] == nil)
        try await #expect(tell(pool, write).status == 202)
        let reply = await pool.ask(.get, read)
        #expect(reply.body == "old" && (reply["Rockpool-Dirty"] == "1") == isOld, "\(reply.head)")
        // Neither another client's view nor a state without the write is old.
        #expect(await pool.ask(.get, read, [.authorization: "bob"])["Rockpool-Dirty"] == nil)
        let operation = try #require(try await pool.all().first)
        _ = try await pool.engine.commands.steer(.cancel, id: operation.id)
        #expect(await pool.ask(.get, read)["Rockpool-Dirty"] == nil)
    }

    @Test(arguments: kinds, [true, false]) func aCopyFromBeforeAnAnsweredWrite(
        _ kind: (read: String, write: String, isOld: Bool), isQueued: Bool
    ) async throws {
        let pool = try pool()
        await pool.ask(.get, kind.read)
        pool.clock.advance(by: .seconds(1))
        if isQueued { pool.goOffline() }
        pool.origin.next(.status(204))
        _ = try await tell(pool, kind.write)
        if isQueued {
            pool.comeOnline()
            await Replayer(engine: pool.engine).runOnce()
        }
        pool.goOffline()
        let reply = await pool.ask(.get, kind.read)
        // What the server has copied to the path itself is read from its source; a deleted path is absent.
        #expect((reply["Rockpool-Dirty"] == "1") == kind.isOld, "\(reply.status) \(reply.head)")
        // A copy that was fetched after the write includes it.
        pool.comeOnline()
        pool.clock.advance(by: .seconds(1))
        await pool.ask(.get, kind.read)
        pool.goOffline()
        let fresh = await pool.ask(.get, kind.read)
        #expect(fresh.body == "old" && fresh["Rockpool-Dirty"] == nil, "\(fresh.head)")
    }

    /// While the upstream answers, the paths above a written one are validated, by their validators; the path itself is fetched anew, and so
    /// is what a COPY or a MOVE has replaced.
    @Test(
        arguments: [
            ("/a/", "PUT /a/b", "\"1\""), ("/", "POST /a", "\"1\""), ("/a/b", "POST /a/b", nil), ("/b", "COPY /a /b", nil),
            ("/b/", "MOVE /a /b", nil),
            ("/b/c", "MOVE /a /b", nil), ("/b", "COPY /a /b/c", "\"1\""),
        ] as [(String, String, String?)])
    func whatIsOldIsFetched(_ read: String, write: String, validator: String?) async throws {
        let pool = try pool { _ in .ok("old", [.eTag: "\"1\"", .cacheControl: "max-age=60"]) }
        await pool.ask(.get, read)
        pool.clock.advance(by: .seconds(1))
        pool.origin.next(.status(204))
        _ = try await tell(pool, write)
        pool.clock.advance(by: .seconds(1))
        let count = pool.origin.sent.count
        let reply = await pool.ask(.get, read)
        #expect(reply.body == "old" && reply["Rockpool-Dirty"] == nil)
        let sent = try #require(pool.origin.sent.last)
        #expect(pool.origin.sent.count == count + 1 && sent.head.fields[.ifNoneMatch] == validator)
    }

    /// A 304 says that the copy includes the write.
    @Test func aValidatedCopyIsNotOld() async throws {
        let pool = try pool()
        await pool.ask(.get, "/a/")
        pool.clock.advance(by: .seconds(1))
        pool.origin.next(.status(204))
        _ = try await tell(pool, "POST /a/b")
        pool.clock.advance(by: .seconds(1))
        pool.origin.next(.status(304, [.eTag: "\"1\""]))
        await pool.ask(.get, "/a/")
        pool.goOffline()
        let reply = await pool.ask(.get, "/a/")
        #expect(reply.body == "old" && reply["Rockpool-Dirty"] == nil)
    }

    /// After a restart the marks are there as before.
    @Test(arguments: [true, false]) func aRestartForgetsNone(isQueued: Bool) async throws {
        let pool = try pool()
        await pool.ask(.get, "/a/")
        pool.clock.advance(by: .seconds(1))
        if isQueued { pool.goOffline() } else { pool.origin.next(.status(204)) }
        _ = try await tell(pool, "POST /a/b")
        var configuration = Configuration()
        configuration.upstreams = [.notes()]
        let engine = Engine(
            configuration: configuration, cache: pool.store.cache, data: pool.store.data, origin: pool.origin, viaName: "again",
            logger: .silent, now: pool.clock.reading, steady: pool.clock.steady)
        try await engine.notifier.recallWrites()
        engine.reachability.record(.failed(.connectTimeout, detail: "connection_timeout"), for: "notes", now: pool.clock.now)
        let exchange = Exchange(request: RequestHead(method: .get, origin: .notes, target: "/a/"), body: nil, bodyLength: nil)
        let reply = await WholeReply(engine.respond(exchange))
        #expect(reply.body == "old" && reply["Rockpool-Dirty"] == "1")
    }

    /// What waits is read back only if it can be what the server will show.
    @Test(
        arguments: [
            ("application/json", #"{"a":1,"b":2}"#, "application/json", #"{"b":1,"a":3}"#, true),
            ("application/json", #"{"a":1,"b":2}"#, "application/json", #"{"a":3}"#, false),
            ("application/json", #"{"a":1}"#, "application/x-www-form-urlencoded", "a=2", false),
            ("text/plain", "old", "text/plain", "new", true), ("text/html", "<p>old", "text/plain", "new", false),
        ] as [(String, String, String, String, Bool)], ["queued", "answered"])
    func aPutIsReadBackIfItCanBeTheRepresentation(
        _ kind: (known: String, old: String, type: String, new: String, isShown: Bool), state: String
    ) async throws {
        let pool = try pool { _ in .ok(kind.old, [.contentType: kind.known, .eTag: "\"1\""]) }
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(1))
        if state == "queued" { pool.goOffline() } else { pool.origin.next(.status(204)) }
        let put = await pool.ask(.put, "/a", [.contentType: kind.type], body: kind.new)
        #expect(put.status == (state == "queued" ? 202 : 204))
        pool.goOffline()
        let reply = await pool.ask(.get, "/a")
        #expect(reply.status == 200 && reply.body == (kind.isShown ? kind.new : kind.old))
        #expect((reply["Rockpool-Dirty"] == nil) == kind.isShown)
        #expect((reply["Rockpool-State"] == "pending") == (kind.isShown && state == "queued"))
    }

    /// A file that is written and then changed in an unknown way is shown as it was written, and marked.
    @Test func anUnknownChangeAfterAWrite() async throws {
        let pool = try pool()
        pool.goOffline()
        _ = try await tell(pool, "PATCH /a")
        _ = try await tell(pool, "PUT /a")
        let first = await pool.ask(.get, "/a")
        #expect(first.body == "new" && first["Rockpool-Dirty"] == nil)
        _ = try await tell(pool, "POST /a")
        let second = await pool.ask(.get, "/a")
        #expect(second.body == "new" && second["Rockpool-Dirty"] == "1")
    }
}
