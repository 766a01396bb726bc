// A pull from page to page (docs/outbox.md#delta-pull; RFC 8288).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct DeltaPullTests {
    static let notes = Resource(
        collection: "/v1/notes", item: "/v1/notes/{id}", version: "/version",
        delta: .init(query: "updatedAfter={cursor}&limit=2", cursor: "/updatedAt", deleted: "/deletedAt"))
    static let synced = Resource(collection: "/v1/notes", sync: .init(pull: "/v1/sync?since={cursor}"))

    private func pull(_ resource: Resource = notes, since: DeltaCursor? = nil, isFull: Bool = false) throws -> DeltaPull {
        let base = RequestHead(method: .get, origin: OriginAddress(scheme: .http, host: "api.test"), target: "/")
        return DeltaPull(try #require(DeltaShape(resource)), base: base, since: since, isFull: isFull)
    }

    private func target(_ action: DeltaPull.Action) -> String? { if case .ask(let request) = action { request.target } else { nil } }
    private func outcome(_ action: DeltaPull.Action) -> DeltaOutcome? { if case .finished(let outcome) = action { outcome } else { nil } }

    @Test func theFirstPullListsEverything() throws {
        var pull = try pull()
        #expect(target(pull.start()) == "/v1/notes?limit=2")
        let action = pull.received(
            Array(
                #"[{"id":"1","version":3,"updatedAt":"2026-01-01T00:00:00Z","n":1.50},{"id":2,"deletedAt":"2026-01-01T00:00:09Z"}]"#.utf8),
            fields: [:])
        let found = try #require(outcome(action))
        #expect(found.isFull && found.pages == 1 && found.cursor?.stored == "time 2026-01-01T00:00:09Z")
        let deletedAt = RFC3339.parse("2026-01-01T00:00:09Z")
        #expect(found.changes.map(\.id) == ["1", "2"] && found.changes.last == .removal(id: "2", at: deletedAt))
        guard case .upsert(_, "3", let note) = found.changes.first else { return #expect(Bool(false), "\(found.changes)") }
        #expect(String(decoding: note.serialized(), as: UTF8.self).contains(#""n":1.50"#))
    }

    @Test func laterPullsAskWithTheOverlapUnlessEverythingIsDue() throws {
        let since = DeltaCursor(member: "2026-01-01T00:01:30Z")
        var delta = try pull(since: since)
        #expect(target(delta.start()) == "/v1/notes?updatedAfter=2026-01-01T00%3A00%3A30.000Z&limit=2")
        // Without changes the cursor stays; the local clock is never used for it.
        let found = try #require(outcome(delta.received(Array("[]".utf8), fields: [:])))
        #expect(found.changes.isEmpty && found.cursor == since && !found.isFull && found.pages == 1)
        var full = try pull(since: since, isFull: true)
        #expect(target(full.start()) == "/v1/notes?limit=2")
        #expect(outcome(full.received(Array("[]".utf8), fields: [:]))?.isFull == true)
    }

    /// A time that the upstream has not reached would hide every change until then (docs/outbox.md#times).
    @Test(arguments: [
        (#""2099-01-01T00:00:00Z""#, "time 2026-01-01T00:00:00Z"), (#""2026-01-01T12:05:01Z""#, "time 2026-01-01T00:00:00Z"),
        (#""2026-01-01T12:05:00Z""#, "time 2026-01-01T12:05:00Z"), ("4070908800", "time 2026-01-01T00:00:00Z"),
        ("4070908800000", "time 2026-01-01T00:00:00Z"),
    ]) func noCursorRunsAhead(_ updatedAt: String, _ stored: String) throws {
        let body = #"[{"id":1,"updatedAt":"2026-01-01T00:00:00Z"},{"id":2,"updatedAt":\#(updatedAt)},{"id":3,"deletedAt":\#(updatedAt)}]"#
        var delta = try pull()
        _ = delta.start()
        let fields: HTTPFields = [.date: "Thu, 01 Jan 2026 12:00:00 GMT"]
        let found = try #require(outcome(delta.received(Array(body.utf8), fields: fields)))
        #expect(found.cursor?.stored == stored && found.changes.count == 3)
        let isAhead = stored.hasSuffix("00:00:00Z")
        guard case .removal("3", let at)? = found.changes.last else { return #expect(Bool(false), "\(found.changes)") }
        #expect((at == nil) == isAhead)
        // Without a clock of the upstream nothing can be compared.
        var clockless = try pull()
        _ = clockless.start()
        #expect((outcome(clockless.received(Array(body.utf8), fields: [:]))?.cursor?.stored != stored) == isAhead)
        // A cursor that ran ahead before is given up: the next pull lists everything.
        var stuck = try pull(since: DeltaCursor(stored: "time 2099-01-01T00:00:00Z"))
        _ = stuck.start()
        let freed = try #require(outcome(stuck.received(Array("[]".utf8), fields: fields)))
        #expect(freed.cursor == nil)
    }

    @Test(arguments: [
        (#"</v1/notes?page=2>; rel="next""#, "/v1/notes?page=2"),
        (#"</a,b>; rel=prev, <?page=2>; title="x"; rel="last next""#, "/v1/notes?page=2"),
        ("<http://api.test/v1/notes?page=2>; rel=next", "/v1/notes?page=2"), (#"</v1/notes?page=2>; rel="prev""#, nil),
        ("<http://elsewhere.test/v1/notes?page=2>; rel=next", nil),
    ]) func linksAreFollowedWithinTheOrigin(_ link: String, _ next: String?) throws {
        var pull = try pull()
        _ = pull.start()
        let name = try #require(HTTPField.Name("Link"))
        #expect(target(pull.received(Array("[]".utf8), fields: [name: link])) == next)
    }

    @Test(arguments: [
        (#"{"changes":[],"cursor":"c2","hasMore":true}"#, "/v1/sync?since=c2"),
        (#"{"changes":[],"next":"tok en"}"#, "/v1/sync?since=tok%20en"),
        (#"{"changes":[],"next":"/v1/sync?page=2"}"#, "/v1/sync?page=2"),
        (#"{"changes":[],"next":null,"hasMore":false,"cursor":"c2"}"#, nil),
        (#"{"changes":[],"hasMore":true}"#, nil),
    ]) func bodiesSayWhatFollows(_ body: String, _ next: String?) throws {
        var pull = try pull(Self.synced)
        #expect(target(pull.start()) == "/v1/sync")
        #expect(target(pull.received(Array(body.utf8), fields: [:])) == next)
    }

    @Test func theLastWordOnAnEntityCountsAndTheIssuedCursorIsKept() throws {
        var pull = try pull(Self.synced, since: DeltaCursor(issued: "c1"))
        #expect(target(pull.start()) == "/v1/sync?since=c1")
        _ = pull.received(Array(#"{"changes":[{"id":"1"},{"id":"2"}],"cursor":"c2","hasMore":true}"#.utf8), fields: [:])
        let action = pull.received(Array(#"{"changes":[],"tombstones":[{"id":"1"},"3"],"cursor":"c3"}"#.utf8), fields: [:])
        let found = try #require(outcome(action))
        #expect(found.cursor?.stored == "issued c3" && found.pages == 2 && !found.isFull)
        #expect(found.changes == [.removal(id: "1"), .upsert(id: "2", version: nil, representation: ["id": "2"]), .removal(id: "3")])
    }

    @Test(arguments: ["", "{}", #"{"changes":7}"#, #"{"changes":[{"title":"x"}]}"#, #"{"changes":[],"tombstones":[{}]}"#])
    func whatCannotBeReadTakesNothing(_ body: String) throws {
        var pull = try pull(Self.synced)
        _ = pull.start()
        guard case .failed = pull.received(Array(body.utf8), fields: [:]) else { return #expect(Bool(false)) }
    }

    @Test func pagesThatGoRoundEndThePull() throws {
        var pull = try pull(Self.synced)
        _ = pull.start()
        let page = Array(#"{"changes":[],"next":"/v1/sync"}"#.utf8)
        guard case .failed(let why) = pull.received(page, fields: [:]) else { return #expect(Bool(false)) }
        #expect(why.contains("/v1/sync"))
    }

    @Test func pagesAreBounded() throws {
        var pull = try pull(Self.synced, since: DeltaCursor(issued: "c0"))
        var action = pull.start()
        var count = 0
        while case .ask = action {
            count += 1
            action = pull.received(Array(#"{"changes":[],"cursor":"c\#(count)","hasMore":true}"#.utf8), fields: [:])
        }
        // The changes covered by the upstream's own cursor are kept.
        #expect(count == DeltaPull.pageLimit && outcome(action)?.cursor?.stored == "issued c\(count)")
    }

    @Test(arguments: [
        Resource(collection: "/n"), Resource(collection: "/l/{l}/n", delta: .init(query: "a={cursor}", cursor: "/u")),
        Resource(collection: "/n", item: "/l/{l}/n/{id}", delta: .init(query: "a={cursor}", cursor: "/u")),
    ]) func whatCannotBeAskedForHasNoShape(_ resource: Resource) { #expect(DeltaShape(resource) == nil) }
}
