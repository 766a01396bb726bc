// Reads that include the client's own pending writes (docs/outbox.md#reads, P8).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ReadYourWritesTests {
    private func title(_ pool: ScriptedEngine, _ target: String = "/notes/1", _ fields: HTTPFields = [:]) async -> String? {
        await pool.ask(.get, target, fields).json["title"]?.string
    }

    /// Returns an engine that has stored the collection and is offline.
    private func collection(_ body: String = #"[{"id":1,"title":"sea"},{"id":2,"title":"sky"}]"#) async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [.declared()])
        pool.origin.next(.json(body, etag: "\"c1\""))
        await pool.ask(.get, "/notes")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        return pool
    }

    // MARK: what is kept

    /// A list that is read again is not folded again; every change of what it is made of shows at once.
    @Test func aFoldedListIsKeptUntilSomethingChanges() async throws {
        let pool = try await collection()
        await pool.tell(.post, "/notes", #"{"title":"new"}"#)
        func titles(_ fields: HTTPFields = [:]) async -> [String] {
            await pool.ask(.get, "/notes", fields).json.array?.compactMap { $0["title"]?.string } ?? []
        }
        let first = await pool.ask(.get, "/notes")
        let again = await pool.ask(.get, "/notes")
        #expect(first.body == again.body && first["ETag"] == again["ETag"] && again["Rockpool-Pending"] == "1")
        #expect(await pool.ask(.get, "/notes", [.ifNoneMatch: first["ETag"] ?? ""]).status == 304)
        #expect(await titles() == ["sea", "sky", "new"])
        // Another client, and another write.
        #expect(await titles([.authorization: "bob"]) == ["sea", "sky"])
        await pool.tell(.patch, "/notes/1", #"{"title":"lake"}"#)
        #expect(await titles() == ["lake", "sky", "new"])
        // The write is discarded.
        let patch = try #require(try await pool.all().last)
        _ = try await pool.engine.commands.steer(.cancel, id: patch.id)
        #expect(await titles() == ["sea", "sky", "new"])
        // The server's list changes.
        pool.comeOnline()
        pool.clock.advance(by: .hours(1))
        pool.origin.next(.json(#"[{"id":2,"title":"sky"}]"#, etag: "\"c2\""))
        #expect(await titles() == ["sky", "new"])
    }

    // MARK: items

    @Test func aPendingWriteIsShownMarkedAndNotStored() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        let reply = await pool.ask(.get, "/notes/1")
        #expect(reply.json["title"]?.string == "mine" && reply.json["done"] == .bool(false))
        #expect(reply["Rockpool-State"] == "pending" && reply["Rockpool-Pending"] == "1" && reply["Cache-Control"] == "no-store")
        #expect(reply["ETag"] == "\"loc-1-v1\"")
        #expect(reply["Last-Modified"] == nil && reply["Age"] == nil)
    }

    @Test func aDeliveredOneIsShownUntilACopyIsNewer() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        await pool.replay(.status(204))
        pool.goOffline()
        pool.clock.advance(by: .seconds(1))
        let stale = await pool.ask(.get, "/notes/1")
        #expect(stale.json["title"]?.string == "mine" && stale["Rockpool-State"] == nil, "the copy is older than the delivery")
        pool.comeOnline()
        pool.clock.advance(by: .hours(1))
        pool.origin.next(.json(#"{"id":1,"title":"theirs"}"#, etag: "\"v3\""))
        let fresh = await pool.ask(.get, "/notes/1")
        #expect(fresh.json["title"]?.string == "theirs" && fresh["ETag"] == "\"v3\"")
        #expect(await title(pool) == "theirs")
    }

    @Test func nobodyElseSeesIt() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#, [.authorization: "ann"])
        await pool.tell(.post, "/notes", "{}", [.authorization: "ann"])
        let reply = await pool.ask(.get, "/notes/1", [.authorization: "bob"])
        #expect(!reply.body.contains("mine") && reply["Rockpool-State"] == nil && reply["ETag"]?.contains("loc-") != true)
        let id = try #require(try await pool.all().last?.localID)
        #expect(await pool.ask(.get, "/notes/\(id)", [.authorization: "bob"]).status == 404)
        #expect(await pool.ask(.get, "/notes/\(id)", [.authorization: "ann"]).status == 200)
    }

    @Test func conditionsAreAskedOfWhatIsShown() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        let tag = try #require(await pool.ask(.get, "/notes/1")["ETag"])
        let same = await pool.ask(.get, "/notes/1", [.ifNoneMatch: tag])
        #expect(same.status == 304 && same.body.isEmpty && same["ETag"] == tag)
        #expect(await pool.ask(.get, "/notes/1", [.ifNoneMatch: "\"v1\""]).status == 200, "the upstream's ETag is older")
        await pool.tell(.patch, "/notes/1", #"{"title":"again"}"#)
        #expect(await pool.ask(.get, "/notes/1", [.ifNoneMatch: tag]).status == 200)
        let head = await pool.ask(.head, "/notes/1")
        #expect(head.status == 200 && head.body.isEmpty && head["ETag"] == "\"loc-2-v1\"")
    }

    @Test func aDeletedOneIsNotFound() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.delete, "/notes/1")
        for method in [HTTPRequest.Method.get, .head] {
            let reply = await pool.ask(method, "/notes/1")
            #expect(reply.status == 404 && reply["Rockpool-State"] == "pending-delete")
        }
    }

    @Test func whatCannotBeFoldedIsSaidToBeDirty() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.put, "/notes/1", "plain", [.contentType: "text/plain"])
        let reply = await pool.ask(.get, "/notes/1")
        #expect(reply.status == 200 && reply["Rockpool-Dirty"] == "1" && reply.json["title"]?.string == "sea")
    }

    @Test func aFinishedWriteThatFailedIsNotShown() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        await pool.replay(.status(422))
        pool.goOffline()
        #expect(try await pool.states() == [.dead])
        #expect(await title(pool) == "sea")
    }

    @Test func aHotHitIsNotServedOverAWrite() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        for _ in 0..<3 { #expect(await title(pool) == "sea") }
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        for _ in 0..<3 { #expect(await title(pool) == "mine") }
    }

    // MARK: bodies beyond the fold limit

    static let large = #"{"id":1,"title":"\#(String(repeating: "sea ", count: 3 << 20))"}"#

    /// A body longer than the fold limit is served complete, unchanged and marked dirty, whether or not its length is known.
    @Test(arguments: [true, false], ["/notes/1", "/notes"])
    func whatIsTooLargeToFoldComesWholeAndDirty(lengthIsKnown: Bool, target: String) async throws {
        let pool = try ScriptedEngine(upstreams: [.declared(.accepted)])
        pool.goOffline()
        await pool.tell(.patch, "/notes/1", #"{"done":true}"#)
        pool.comeOnline()
        let body = BodyPipe()
        let head = ResponseHead(status: 200, fields: [.contentType: "application/json", .cacheControl: "no-store"])
        let whole = target == "/notes" ? "[\(Self.large)]" : Self.large
        pool.origin.next(.live(head, body, length: lengthIsKnown ? Int64(whole.utf8.count) : nil))
        async let answered = pool.ask(.get, target)
        let bytes = ByteBuffer(string: whole)
        for start in stride(from: 0, to: bytes.readableBytes, by: 1 << 20) {
            if let piece = bytes.getSlice(at: start, length: min(1 << 20, bytes.readableBytes - start)) { body.offer(piece) }
        }
        body.finish()
        let reply = await answered
        #expect(reply.body.utf8.count == whole.utf8.count && reply.body == whole && reply.failure == nil)
        #expect(reply["Rockpool-Dirty"] == "1")
    }

    // MARK: collections

    @Test func aCollectionShowsWhatIsNewChangedAndGone() async throws {
        let pool = try await collection()
        let id = try #require(await pool.tell(.post, "/notes", #"{"title":"new"}"#)["Rockpool-Local-Id"])
        await pool.tell(.put, "/notes/1", #"{"id":1,"title":"changed"}"#)
        await pool.tell(.delete, "/notes/2")
        let reply = await pool.ask(.get, "/notes")
        #expect(reply.json.array?.compactMap { $0["title"]?.string }.sorted() == ["changed", "new"])
        #expect(reply.body.contains(id) && reply["Rockpool-Pending"] == "3" && reply["ETag"] == "\"loc-3-c1\"")
    }

    @Test func aDeliveredCreateIsThereOnceUnderItsNewID() async throws {
        let pool = try await collection()
        let id = try #require(await pool.tell(.post, "/notes", #"{"title":"new"}"#)["Rockpool-Local-Id"])
        await pool.replay(.created(7))
        pool.goOffline()
        let stale = await pool.ask(.get, "/notes")
        #expect(stale.json.array?.count == 3 && !stale.body.contains(id) && stale.body.contains(#""id":7"#))
        pool.comeOnline()
        pool.clock.advance(by: .hours(1))
        pool.origin.next(.json(#"[{"id":7,"title":"new"}]"#))
        #expect(await pool.ask(.get, "/notes").json.array?.count == 1)
    }

    // MARK: local ids

    @Test func aMappedLocalIDIsReadByBothNames() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let id = try #require(await pool.tell(.post, "/notes", #"{"title":"new"}"#)["Rockpool-Local-Id"])
        await pool.replay(.created(7))
        pool.clock.advance(by: .seconds(1))
        pool.origin.answers { $0.head.target == "/notes/7" ? .json(#"{"id":7,"title":"new"}"#) : .status(404) }
        let reply = await pool.ask(.get, "/notes/\(id)")
        #expect(reply.status == 200 && reply["Content-Location"] == "http://api.test/notes/7")
        #expect(await pool.ask(.get, "/notes/7")["Content-Location"] == nil)
        pool.goOffline()
        await pool.tell(.patch, "/notes/\(id)", #"{"title":"one"}"#)
        #expect(await title(pool, "/notes/7") == "one", "a write by one name is read by the other")
        await pool.tell(.patch, "/notes/7", #"{"title":"two"}"#)
        #expect(await title(pool, "/notes/\(id)") == "two")
        #expect(Set(try await pool.operations().map(\.lane)).count == 1)
    }

    @Test func anUnmappedParentHasACollectionOfItsOwn() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let note = try #require(await pool.tell(.post, "/notes", "{}")["Rockpool-Local-Id"])
        let comment = await pool.tell(.post, "/notes/\(note)/comments", #"{"text":"hm"}"#)
        #expect(comment.status == 201)
        let list = await pool.ask(.get, "/notes/\(note)/comments")
        #expect(list.status == 200 && list.json.array?.compactMap { $0["text"]?.string } == ["hm"])
        let id = try #require(comment["Rockpool-Local-Id"])
        #expect(await pool.ask(.get, "/notes/\(note)/comments/\(id)").json["text"]?.string == "hm")
        await pool.replay(.created(7), .status(201, [.location: "/notes/7/comments/8"]))
        #expect(pool.origin.lines.suffix(2) == ["POST /notes", "POST /notes/7/comments"])
        pool.goOffline()
        let mapped = await pool.ask(.get, "/notes/7/comments/8")
        #expect(mapped.json["text"]?.string == "hm", "after the delivery the comment is shown under the new names")
    }

    @Test func whatWasCancelledIsNotThere() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        let reply = await pool.tell(.post, "/notes", "{}")
        let (id, operation) = (try #require(reply["Rockpool-Local-Id"]), try #require(reply["Rockpool-Operation"]))
        _ = try await pool.engine.commands.steer(.cancel, id: operation)
        for target in ["/notes/\(id)", "/notes/\(id)/comments"] { #expect(await pool.ask(.get, target).status == 404, "\(target)") }
    }

    @Test func aRestartForgetsNothing() async throws {
        let pool = try await ScriptedEngine.holdingOne()
        await pool.tell(.patch, "/notes/1", #"{"title":"mine"}"#)
        let id = try #require(await pool.tell(.post, "/notes", #"{"title":"new"}"#)["Rockpool-Local-Id"])
        let later = Engine(
            configuration: pool.engine.configuration, cache: pool.store.cache, data: pool.store.data, origin: pool.origin,
            viaName: "later", logger: .silent, now: pool.clock.reading)
        try await later.notifier.recallWrites()
        later.reachability.record(.failed(.connectTimeout, detail: "connection_timeout"), for: "notes", now: pool.clock.now)
        for (target, title) in [("/notes/1", "mine"), ("/notes/\(id)", "new")] {
            let reply = await WholeReply(later.respond(Exchange(request: RequestHead(method: .get, origin: .notes, target: target))))
            #expect(reply.json["title"]?.string == title)
        }
    }
}
