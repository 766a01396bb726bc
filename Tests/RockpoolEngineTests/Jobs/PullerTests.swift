// Changes of the upstream appear in the cache, except in the bases of pending writes (docs/outbox.md#delta-pull).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Synchronization
import Testing

/// A small notes API: a list that takes `after`, and items with ETags.
private final class NotesScript: Sendable {
    struct Note {
        var text: String
        var at: Int64
        var isGone = false
    }

    let notes = Mutex<[String: Note]>([:])
    /// If true, the API answers 500.
    let isBroken = Mutex(false)

    init(_ texts: [String: String] = ["1": "one", "2": "two"]) {
        notes.withLock { $0 = texts.mapValues { Note(text: $0, at: 1_767_225_000_000) } }
    }

    func set(_ id: String, _ text: String?, at seconds: Int64 = 1_767_225_500) {
        notes.withLock { $0[id] = Note(text: text ?? "", at: seconds * 1000, isGone: text == nil) }
    }

    func vanish(_ id: String) { notes.withLock { $0[id] = nil } }

    var rule: ScriptedOrigin.Rule {
        { request in
            if self.isBroken.withLock({ $0 }) { return .status(500) }
            guard request.head.method == .get else { return .status(200, [.eTag: "\"own\""], "{}") }
            let target = request.head.target
            if target.hasPrefix("/notes/") { return self.item(String(target.dropFirst(7))) }
            let after = target.split(separator: "=").last.flatMap { Int64($0) }
            let items = self.notes.withLock { notes in
                notes.sorted { $0.key < $1.key }.filter { note in after.map { note.value.at > $0 } ?? !note.value.isGone }
                    .map { Self.json($0.key, $0.value) }
            }
            return .ok(
                String(decoding: JSONValue.array(items).serialized(), as: UTF8.self),
                [.contentType: "application/json", .cacheControl: "no-cache", .eTag: "\"list\""])
        }
    }

    private func item(_ id: String) -> ScriptedAnswer {
        guard let note = notes.withLock({ $0[id] }), !note.isGone else { return .status(404) }
        return .ok(
            String(decoding: Self.json(id, note).serialized(), as: UTF8.self),
            [.contentType: "application/json", .cacheControl: "no-cache", .eTag: "\"\(note.text)\""])
    }

    private static func json(_ id: String, _ note: Note) -> JSONValue {
        ["id": .string(id), "text": .string(note.text), "at": .number(JSONNumber(note.at)), "gone": .bool(note.isGone)]
    }
}

@Suite(.timeLimit(.minutes(1)))
struct PullerTests {
    static func upstream(version: String = "etag") -> Upstream {
        .notes {
            $0.resources = [
                Resource(
                    collection: "/notes", item: "/notes/{id}", version: version,
                    delta: .init(query: "after={cursor}", cursor: "/at", deleted: "/gone"))
            ]
        }
    }

    private func world(version: String = "etag") throws -> (ScriptedEngine, NotesScript, Puller) {
        let script = NotesScript()
        let pool = try ScriptedEngine(upstreams: [Self.upstream(version: version)], rule: script.rule)
        return (pool, script, Puller(engine: pool.engine))
    }

    private func texts(_ reply: WholeReply) -> [String] { reply.json.array?.compactMap { $0["text"]?.string } ?? [] }

    @Test func editsCreationsAndDeletionsShowOffline() async throws {
        let (pool, script, puller) = try world()
        for target in ["/notes", "/notes/1", "/notes/2"] { await pool.ask(.get, target) }
        let first = try #require(await puller.runOnce().scopes.first)
        #expect(first.error == nil && first.isFull && first.written == 0)
        script.set("1", "edited")
        script.set("2", nil)
        script.set("3", "three")
        pool.clock.advance(by: .seconds(1))
        let report = try #require(await puller.runOnce().scopes.first)
        #expect(report.error == nil && !report.isFull && report.changed == 2 && report.gone == 1 && report.removed == 1)
        pool.goOffline()
        #expect(texts(await pool.ask(.get, "/notes")) == ["edited", "three"])
        let note = await pool.ask(.get, "/notes/1")
        // The puller fetches the item on its own, because a later write needs the ETag of its base.
        #expect(note.json["text"]?.string == "edited" && note["ETag"] == "\"edited\"")
        #expect(await pool.ask(.get, "/notes/2").status == 404)
        #expect(try await pool.store.data.tombstones(upstream: "notes", type: "/notes").keys.sorted() == ["2"])
        let scope = try #require(try await pool.store.data.pulledScopes(prefix: "notes|/notes|").first)
        #expect(scope.cursor?.stored == "milliseconds 1767225500000" && scope.serverCount == 2 && scope.syncedAt == pool.clock.now)
    }

    @Test func whatHasAVersionIsWrittenWithoutAskingForIt() async throws {
        let (pool, script, puller) = try world(version: "/at")
        await pool.ask(.get, "/notes/1")
        _ = await puller.runOnce()
        script.set("1", "edited")
        pool.clock.advance(by: .seconds(1))
        let asked = pool.origin.sent.count
        let report = await puller.runOnce()
        #expect(report.scopes.first?.written == 1 && pool.origin.sent.count == asked + 1)
        pool.goOffline()
        let note = await pool.ask(.get, "/notes/1")
        #expect(note.json["text"]?.string == "edited" && note["ETag"] == nil)
    }

    @Test func nothingNewWritesNothing() async throws {
        let (pool, script, puller) = try world()
        for target in ["/notes", "/notes/1", "/notes?q=x"] { await pool.ask(.get, target) }
        script.set("1", "edited")
        _ = await puller.runOnce()
        for _ in 0..<3 {
            // The overlap of the pulls returns the last change every time.
            pool.clock.advance(by: .seconds(1))
            let report = try #require(await puller.runOnce().scopes.first)
            #expect(report.error == nil && report.changed == 0 && report.written == 0 && report.invalidated == 0)
        }
    }

    @Test func filteredListsAreAskedForAgain() async throws {
        let (pool, script, puller) = try world()
        await pool.ask(.get, "/notes?q=x")
        _ = await puller.runOnce()
        script.set("1", "edited")
        pool.clock.advance(by: .seconds(1))
        #expect(await puller.runOnce().scopes.first?.invalidated == 1)
    }

    @Test func everythingIsListedAgainToFindWhatVanished() async throws {
        let (pool, script, puller) = try world()
        for target in ["/notes", "/notes/1", "/notes/2"] { await pool.ask(.get, target) }
        _ = await puller.runOnce()
        script.vanish("2")
        pool.clock.advance(by: .hours(1))
        #expect(await puller.runOnce().scopes.first?.gone == 0)
        pool.clock.advance(by: .hours(24))
        let report = try #require(await puller.runOnce().scopes.first)
        #expect(report.isFull && report.gone == 1 && report.removed == 1)
        pool.goOffline()
        #expect(texts(await pool.ask(.get, "/notes")) == ["one"])
        #expect(await pool.ask(.get, "/notes/2").status == 404)
    }

    @Test func aLostPageMovesNothing() async throws {
        let (pool, script, puller) = try world()
        await pool.ask(.get, "/notes")
        _ = await puller.runOnce()
        script.set("1", "edited")
        script.isBroken.withLock { $0 = true }
        #expect(await puller.runOnce().scopes.first?.error == "/notes?after=1767224940000: 500")
        script.isBroken.withLock { $0 = false }
        pool.clock.advance(by: .seconds(1))
        #expect(await puller.runOnce().scopes.first?.changed == 1)
    }

    @Test func aForgottenCursorStartsOver() async throws {
        let (pool, _, puller) = try world()
        _ = await puller.runOnce()
        pool.origin.next(.status(410))
        let report = try #require(await puller.runOnce().scopes.first)
        #expect(report.error == nil && report.isFull)
    }

    @Test func whatWasFetchedLaterStays() async throws {
        let (pool, script, puller) = try world()
        await pool.ask(.get, "/notes")
        _ = await puller.runOnce()
        script.set("1", "edited")
        pool.clock.advance(by: .seconds(1))
        let gate = Gate()
        let list = #"[{"id":"1","text":"older","at":1767225400000}]"#
        pool.origin.next(.held(gate, .ok(list, [.contentType: "application/json"])))
        async let pulled = puller.runOnce()
        try await eventually("the pull is under way") { pool.origin.lines.last?.contains("after=") == true }
        pool.clock.advance(by: .seconds(1))
        await pool.ask(.get, "/notes")
        gate.open()
        #expect(await pulled.scopes.first?.written == 0)
        pool.goOffline()
        #expect(texts(await pool.ask(.get, "/notes")) == ["edited", "two"])
    }

    // MARK: pending writes

    @Test func theBaseOfAPendingWriteStaysAndItsConflictIsToldOnce() async throws {
        let (pool, script, puller) = try world()
        for target in ["/notes", "/notes/1"] { await pool.ask(.get, target) }
        _ = await puller.runOnce()
        let heard = Mutex<[String]>([])
        pool.engine.events.listen { event in
            if case .conflictAhead(let id) = event { heard.withLock { $0.append(id) } }
        }
        pool.goOffline()
        #expect(await pool.ask(.put, "/notes/1", [.ifMatch: "\"one\""], body: "mine").status == 202)
        pool.comeOnline()
        script.set("1", "theirs")
        script.set("2", "free")
        for _ in 0..<2 {
            pool.clock.advance(by: .seconds(1))
            let report = try #require(await puller.runOnce().scopes.first)
            #expect(report.error == nil && report.withheld == 1 && report.conflictsAhead == 1)
        }
        let operation = try #require(try await pool.store.data.openOperations().first)
        #expect(operation.state == .pending && heard.withLock { $0 } == [operation.id])
        let ahead = try #require(puller.conflictsAhead.first)
        #expect(ahead.operation == operation.id && ahead.version == "\"theirs\"" && ahead.theirs?["text"] == "theirs")
        let lines = try await pool.store.data.log().filter { $0.event == "conflict-ahead" }
        #expect(lines.map(\.operation) == [operation.id])
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/1").json["text"]?.string == "one")
        #expect(texts(await pool.ask(.get, "/notes")) == ["one", "free"])

        // After the write is discarded, the withheld change is applied.
        _ = try await pool.store.data.transition(
            id: operation.id, to: .cancelled, reason: .discarded, from: [.pending], now: pool.clock.now)
        pool.comeOnline()
        pool.clock.advance(by: .seconds(1))
        _ = await puller.runOnce()
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/1").json["text"]?.string == "theirs" && puller.conflictsAhead.isEmpty)
    }

    @Test func aWriteOnTheUpstreamsVersionMeetsNoConflict() async throws {
        let (pool, script, puller) = try world()
        await pool.ask(.get, "/notes/1")
        _ = await puller.runOnce()
        script.set("1", "seen")
        pool.goOffline()
        await pool.ask(.put, "/notes/1", [.ifMatch: "\"seen\""], body: "mine")
        pool.comeOnline()
        let report = try #require(await puller.runOnce().scopes.first)
        #expect(report.withheld == 1 && report.conflictsAhead == 0)
    }

    @Test(arguments: [("PUT", 1), ("DELETE", 0)]) func aDeletionMeetsEdits(_ method: String, _ conflicts: Int) async throws {
        let (pool, script, puller) = try world()
        await pool.ask(.get, "/notes/1")
        _ = await puller.runOnce()
        pool.goOffline()
        await pool.ask(try #require(HTTPRequest.Method(method)), "/notes/1", body: "mine")
        pool.comeOnline()
        script.set("1", nil)
        #expect(await puller.runOnce().scopes.first?.conflictsAhead == conflicts)
        pool.goOffline()
        // The client reads its own write; the upstream's change is withheld until the write has ended.
        let shown = await pool.ask(.get, "/notes/1")
        #expect(method == "DELETE" ? shown.status == 404 : shown.json["text"]?.string == "one")
    }

    // MARK: identities and schedule

    @Test func eachIdentityIsPulledWithItsOwnCredential() async throws {
        let (pool, script, puller) = try world()
        for user in ["ann", "bob"] { await pool.ask(.get, "/notes", [.authorization: "Bearer \(user)"]) }
        let report = await puller.runOnce()
        #expect(report.scopes.count == 2 && report.scopes.allSatisfy { $0.isPrivate && $0.error == nil })
        script.set("1", "edited")
        pool.clock.advance(by: .seconds(1))
        let before = pool.origin.sent.count
        _ = await puller.runOnce()
        #expect(Set(pool.origin.sent.dropFirst(before).map { $0.head.fields[.authorization] }) == ["Bearer ann", "Bearer bob"])
        pool.goOffline()
        #expect(texts(await pool.ask(.get, "/notes", [.authorization: "Bearer ann"])) == ["edited", "two"])
        #expect(await pool.ask(.get, "/notes").status == 504)
        #expect(try await pool.store.data.pulledScopes(prefix: "notes|/notes|").count == 2)
        #expect(pool.store.stateFiles(holding: "Bearer ann").isEmpty)
    }

    @Test func pullsKeepTheirCadenceAndComeAfterThePush() async throws {
        let (pool, _, puller) = try world()
        #expect(await puller.pullDue().scopes.count == 1)
        #expect(await puller.pullDue().scopes.isEmpty)
        pool.clock.advance(by: .minutes(5))
        #expect(await puller.pullDue().scopes.count == 1)
        pool.goOffline()
        #expect(await puller.pullDue().scopes.isEmpty)
        await pool.ask(.put, "/notes/1", body: "mine")
        pool.comeOnline()
        // The upstream is back, but a pending write must be sent first.
        #expect(await puller.pullDue().scopes.isEmpty)
        #expect(await Replayer(engine: pool.engine).runOnce().delivered == 1)
        #expect(await puller.pullDue().scopes.count == 1)
        #expect(pool.origin.lines.suffix(2).first == "PUT /notes/1")
    }

    @Test func whoAsksWhileAPullIsUnderWayGetsOneOfTheirOwn() async throws {
        let (pool, script, puller) = try world()
        for target in ["/notes", "/notes/1"] { await pool.ask(.get, target) }
        _ = await puller.runOnce()
        pool.clock.advance(by: .minutes(5))
        let (gate, sent) = (Gate(), pool.origin.sent.count)
        pool.origin.next(.held(gate, .ok("[]", [.contentType: "application/json"])))
        async let due = puller.pullDue()
        try await eventually("the pull that comes by itself") { pool.origin.sent.count == sent + 1 }
        script.set("1", "edited")
        async let asked = puller.runOnce()
        for _ in 0..<100 { await Task.yield() }
        gate.open()
        let (first, second) = await (due, asked)
        #expect(first.scopes.map(\.written) == [0] && second.scopes.count == 1, "\(first), \(second)")
        pool.goOffline()
        #expect(await pool.ask(.get, "/notes/1").json["text"]?.string == "edited")
    }

    @Test func nothingIsAskedOfAnUpstreamThatIsAway() async throws {
        let (pool, _, puller) = try world()
        pool.goOffline()
        #expect(await puller.runOnce().scopes.first?.error == "the upstream is away" && pool.origin.sent.isEmpty)
    }

    @Test func entitiesSayHowTheyStand() async throws {
        let (pool, _, puller) = try world()
        for target in ["/notes", "/notes/1"] { await pool.ask(.get, target) }
        _ = await puller.runOnce()
        pool.goOffline()
        await pool.ask(.put, "/notes/1", body: "mine")
        let standing = try #require(try await pool.engine.commands.entities().first)
        #expect(standing.upstream == "notes" && standing.resource == "/notes" && standing.cached == 2 && standing.serverCount == 2)
        #expect(standing.pending == 1 && standing.conflicts == 0 && standing.lastSync == pool.clock.now)
    }
}
