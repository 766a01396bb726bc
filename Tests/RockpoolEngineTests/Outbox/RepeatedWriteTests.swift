// docs/outbox.md#repeats, docs/outbox.md#replies: which requests are the same write, and how queued writes are answered.
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct RepeatedWriteTests {
    private func pool(_ change: (inout Upstream) -> Void = { _ in }) throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [.notes(change)], rule: { _ in .refused })
        pool.goOffline()
        return pool
    }

    private func post(
        _ pool: ScriptedEngine, _ target: String = "/events", _ body: String = #"{"a":1}"#, _ fields: HTTPFields = [:],
        from address: String = "10.0.0.1"
    ) async -> WholeReply {
        var fields = fields
        if !fields.contains(.contentType) { fields[.contentType] = "application/json" }
        var exchange = Exchange(
            request: RequestHead(method: .post, origin: .notes, target: target, fields: fields), body: BodyPipe(whole: .init(string: body)),
            bodyLength: Int64(body.utf8.count))
        exchange.clientAddress = address
        return await pool.ask(exchange)
    }

    @Test func equalPostsAreOneWrite() async throws {
        let pool = try pool()
        let first = await post(pool)
        #expect(first.status == 202 && first["Rockpool-Repeat"] == nil)
        for n in 1...4 {
            pool.clock.advance(by: .seconds(2))
            let again = await post(pool, "/events", #"{"a":1}"#, [.userAgent: "try \(n)"])
            #expect(again.status == 202 && again["Rockpool-Repeat"] == "1")
            #expect(again["Rockpool-Operation"] == first["Rockpool-Operation"] && again["Location"] == first["Location"])
            #expect(again.json["repeats"] == .number(JSONNumber(Int64(n))))
        }
        #expect(try await pool.all().map(\.repeats) == [4])
        await pool.replay(.status(204))
        #expect(pool.origin.sent.last?.head.fields[.rockpoolRepeat] == nil)
        #expect(try await pool.states() == [.delivered])
    }

    @Test func afterTenSecondsItIsAnotherWrite() async throws {
        let pool = try pool()
        _ = await post(pool)
        pool.clock.advance(by: .seconds(9))
        _ = await post(pool)
        pool.clock.advance(by: .seconds(2))
        _ = await post(pool)
        #expect(try await pool.all().map(\.repeats) == [1, 0])
    }

    /// What differs is another write; each of the requests comes twice.
    @Test func whatDiffersIsAnotherWrite() async throws {
        let variants: [(target: String, body: String, fields: HTTPFields)] = [
            ("/events", #"{"a":1}"#, [:]), ("/events", #"{"a":2}"#, [:]), ("/events?x=1", #"{"a":1}"#, [:]), ("/other", #"{"a":1}"#, [:]),
            ("/tenants", #"{"a":1}"#, [.init("X-Scope-OrgID") ?? .accept: "1"]),
            ("/tenants", #"{"a":1}"#, [.init("X-Scope-OrgID") ?? .accept: "2"]),
            ("/types", "a", [.contentType: "text/plain"]), ("/types", "a", [.contentType: "text/csv"]),
            ("/wishes", "{}", [:]), ("/wishes", "{}", [.rockpoolPriority: "3"]), ("/wishes", "{}", [.rockpoolGroup: "g"]),
            ("/wishes", "{}", [.rockpoolExpires: "60"]), ("/wishes", "{}", [.rockpoolNoMerge: "true"]),
            ("/users", "{}", [.authorization: "Bearer a"]), ("/users", "{}", [.authorization: "Bearer b"]),
        ]
        let pool = try pool()
        for variant in variants {
            for _ in 0..<2 {
                let reply = await post(pool, variant.target, variant.body, variant.fields)
                #expect(reply.status == 202, "\(variant) \(reply.body)")
            }
        }
        let repeats = try await pool.all().map(\.repeats)
        #expect(repeats == variants.map { _ in 1 })
    }

    @Test func differentDependenciesAreDifferentWrites() async throws {
        let pool = try pool()
        let ids = await [post(pool, "/one"), post(pool, "/two")].compactMap { $0["Rockpool-Operation"] }
        try #require(ids.count == 2)
        for id in [ids[0], ids[0], ids[1], ids[1]] { _ = await post(pool, "/events", "{}", [.rockpoolDependsOn: id]) }
        #expect(try await pool.all().map(\.repeats) == [0, 0, 1, 1])
    }

    @Test func clientsWithoutACredentialAreToldApartByAddress() async throws {
        let pool = try pool()
        for address in ["10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.2"] { _ = await post(pool, from: address) }
        #expect(try await pool.all().map(\.repeats) == [1, 1])
    }

    @Test func oneIdentityRepeatsFromEveryAddress() async throws {
        let pool = try pool()
        for address in ["10.0.0.1", "10.0.0.2"] { _ = await post(pool, "/events", "{}", [.authorization: "Bearer a"], from: address) }
        #expect(try await pool.all().map(\.repeats) == [1])
    }

    /// On, off, on: the last one is meant.
    @Test func whatFollowsAnotherWriteOfItsLaneIsNoRepeat() async throws {
        let pool = try pool()
        for body in ["on", "off", "on", "on"] { _ = await post(pool, "/switch", body, [.contentType: "text/plain"]) }
        #expect(try await pool.all().map(\.repeats) == [0, 0, 1])
    }

    @Test func equalWritesOfOtherMethodsAreEachAWrite() async throws {
        let pool = try pool()
        for method in [HTTPRequest.Method.put, .patch] {
            for _ in 0..<3 { await pool.tell(method, "/a", #"{"a":1}"#) }
        }
        #expect(try await pool.all().count == 6)
    }

    @Test func aClientThatNamesAKeyOrAsksForA202IsNotMerged() async throws {
        let pool = try pool()
        for n in 1...2 { _ = await post(pool, "/keys", "{}", [.idempotencyKey: "\"\(n)\""]) }
        for _ in 1...2 { _ = await post(pool, "/async", "{}", [.prefer: "respond-async"]) }
        #expect(try await pool.all().map(\.repeats) == [0, 0, 0, 0])
    }

    @Test func eachIsAWriteIfTheQueueSaysSo() async throws {
        let pool = try pool { $0.queue.repeats = .each }
        for _ in 1...3 { _ = await post(pool) }
        #expect(try await pool.all().map(\.repeats) == [0, 0, 0])
    }

    @Test func aDeadWriteIsNotRepeated() async throws {
        let pool = try pool()
        _ = await post(pool)
        await pool.replay(.status(422))
        #expect(try await pool.states() == [.dead])
        pool.goOffline()
        let again = await post(pool)
        #expect(again["Rockpool-Repeat"] == nil)
        #expect(try await pool.all().map(\.repeats) == [0, 0])
    }

    /// The answer was lost, the client tries again once the upstream is back: it is the same write, and is not sent a second time.
    @Test func whatMayHaveTakenEffectIsNotSentAgain() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes()], rule: { _ in .status(204) })
        pool.origin.next(.lost)
        let first = await post(pool)
        #expect(first.status == 202 && first["Rockpool-State"] == "uncertain")
        let sent = pool.origin.sent.count
        let again = await post(pool)
        #expect(again.status == 202 && again["Rockpool-Operation"] == first["Rockpool-Operation"], "\(again.head)")
        #expect(pool.origin.sent.count == sent)
    }

    @Test func requestsThatArriveTogetherAreOneWrite() async throws {
        let pool = try pool()
        let replies = await withTaskGroup(of: WholeReply.self) { group in
            for _ in 0..<8 { group.addTask { await post(pool) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(replies.allSatisfy { $0.status == 202 } && Set(replies.compactMap { $0["Rockpool-Operation"] }).count == 1)
        #expect(try await pool.all().map(\.repeats) == [7])
    }

    @Test func repeatsBecomeWritesOfTheirOwn() async throws {
        let pool = try pool { $0.resources = [Resource(collection: "/notes", item: "/notes/{id}")] }
        for target in ["/events", "/notes"] {
            for _ in 1...3 { _ = await post(pool, target) }
        }
        let (event, note) = try await (pool.all()[0], pool.all()[1])
        for operation in [event, note] {
            let made = try #require(try await pool.engine.commands.separateRepeats(of: operation.id))
            #expect(made.count == 2 && Set(made.map(\.idempotencyKey)).union([operation.idempotencyKey]).count == 3)
            #expect(made.allSatisfy { $0.repeats == 0 && $0.body == operation.body && $0.request.url == operation.request.url })
            await #expect(throws: Problem.self) { try await pool.engine.commands.separateRepeats(of: operation.id) }
        }
        let all = try await pool.all()
        #expect(all.count == 6 && all.allSatisfy { $0.repeats == 0 })
        #expect(Set(all.compactMap(\.localID)).count == 3 && Set(all.map(\.lane)).count == 4)
        pool.origin.answers { $0.head.target == "/notes" ? .json(#"{"id":1}"#, status: 201) : .status(204) }
        pool.comeOnline()
        for _ in 0..<6 { await Replayer(engine: pool.engine).runOnce() }
        #expect(try await pool.states() == Array(repeating: .delivered, count: 6))
        #expect(pool.origin.lines.count { $0 == "POST /events" } == 3 && pool.origin.lines.count { $0 == "POST /notes" } == 3)
    }

    // MARK: replies

    /// The answer of the API, online, and the reply to the next write of that route, away.
    @Test(
        arguments: [
            (.status(204), 204), (.status(205), 205), (.status(200), 200), (.status(201), 201), (.status(204, [.eTag: "\"1\""]), 204),
            (.status(201, [.location: "/a/1"]), 202), (.status(201, [.contentType: "application/json"], "{}"), 202),
            (.status(200, [.contentType: "text/plain"], "ok"), 202), (.status(202), 202), (.status(404), 202), (.status(500), 202),
            (.status(204, [.setCookie: "a=b"]), 202), (.status(303, [.location: "/a"]), 202),
        ] as [(ScriptedAnswer, Int)])
    func theReplyIsWhatTheAPIAnsweredBefore(answer: ScriptedAnswer, status: Int) async throws {
        let pool = try ScriptedEngine(upstreams: [.notes()], rule: { _ in answer })
        for method in [HTTPRequest.Method.post, .patch, .delete] { await pool.tell(method, "/a/b", method == .delete ? nil : "{}") }
        pool.goOffline()
        for method in [HTTPRequest.Method.post, .patch, .delete] {
            let reply = await pool.tell(method, "/a/b", method == .delete ? nil : #"{"later":1}"#)
            #expect(reply.status == status, "\(method)")
            #expect(
                reply["Rockpool-Operation"] != nil && reply["Rockpool-State"] != nil && reply["Set-Cookie"] == nil && reply["ETag"] == nil)
            guard status != 202 else { continue }
            #expect(reply.body.isEmpty && reply["Location"] == nil && reply["Content-Type"] == nil)
            let id = reply["Rockpool-Operation"] ?? ""
            #expect(reply["Link"] == #"</.well-known/rockpool/operations/\#(id)>; rel="rockpool-operation""#)
        }
    }

    /// Each such reply acknowledges a write of its own.
    @Test func whatIsAnsweredLikeTheAPIIsNotARepeat() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes()], rule: { _ in .status(204) })
        _ = await post(pool)
        pool.goOffline()
        for _ in 1...3 { #expect(await post(pool).status == 204) }
        #expect(await post(pool, "/events", #"{"a":1}"#, [.prefer: "respond-async"]).status == 202)
        #expect(try await pool.all().count == 4)
    }

    @Test func answersToReplaysAreLearnedToo() async throws {
        let pool = try pool()
        #expect(await post(pool).status == 202)
        await pool.replay(.status(204))
        pool.goOffline()
        #expect(await post(pool).status == 204)
        await pool.replay(.json(#"{"id":1}"#, status: 201))
        pool.goOffline()
        #expect(await post(pool).status == 202)
    }

    @Test func anotherStartKnowsTheReplies() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes()], rule: { _ in .status(204) })
        _ = await post(pool)
        #expect(try await pool.store.data.learnedReplies().map(\.route) == [WriteRoute(name: "POST /events")])
        pool.origin.answers { _ in .json("{}") }
        _ = await post(pool)
        #expect(try await pool.store.data.learnedReplies().isEmpty)
    }

    @Test func theConfigurationNamesTheReply() async throws {
        let pool = try pool {
            var slack = Route(match: "POST /services/**")
            slack.offlineResponse = .fixed(FixedReply(status: 200, type: "text/html", body: "ok"))
            var influx = Route(match: "POST /write")
            influx.offlineResponse = .fixed(FixedReply(status: 204))
            $0.routes = [slack, influx]
        }
        let slack = await post(pool, "/services/T/B/x")
        #expect(slack.status == 200 && slack.body == "ok" && slack["Content-Type"] == "text/html" && slack["Location"] == nil)
        let influx = await post(pool, "/write", "m v=1", [.contentType: "text/plain"])
        #expect(influx.status == 204 && influx.body.isEmpty && influx["Rockpool-Operation"] != nil)
        #expect(await post(pool, "/services/T/B/x", "{}", [.prefer: "respond-async"]).status == 202)
    }
}
