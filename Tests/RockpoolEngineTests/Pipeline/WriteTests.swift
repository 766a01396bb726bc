// Writes through the whole engine: sent while the upstream answers, queued when it cannot, refused otherwise (docs/outbox.md#overview).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

extension HTTPField.Name {
    static func own(_ name: String) -> HTTPField.Name { HTTPField.Name("Rockpool-\(name)") ?? .via }
}

extension ScriptedEngine {
    func operations(_ states: Set<OperationState>? = nil) async throws -> [QueuedWrite] {
        // Lists omit bodies; read each operation completely.
        var whole: [QueuedWrite] = []
        for listed in try await store.data.operations(OperationFilter(states: states)).items {
            if let operation = try await store.data.operation(id: listed.id) { whole.append(operation) }
        }
        return whole
    }
}

@Suite(.timeLimit(.minutes(1)))
struct WriteTests {
    /// The name of a group is scoped to one identity.
    @Test func aGroupIsOfOneIdentity() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        let (anna, ben): (HTTPFields, HTTPFields) = (
            [.authorization: "Bearer a", .own("Group"): "g"], [.authorization: "Bearer b", .own("Group"): "g"]
        )
        #expect(await pool.ask(.put, "/notes/1", anna, body: "x").status == 202)
        pool.comeOnline()
        #expect(await pool.ask(.put, "/notes/2", ben, body: "x").status == 200)
        #expect(await pool.ask(.put, "/notes/3", anna, body: "x").status == 202)
    }

    /// `Referer` is sent with a live write and is not stored with a queued one.
    @Test func refererIsNotKept() async throws {
        let pool = try ScriptedEngine()
        let fields: HTTPFields = [.referer: "https://app.test/?token=x", .userAgent: "app"]
        await pool.ask(.put, "/notes/1", fields, body: "x")
        #expect(pool.origin.sent.last?.head.fields[.referer] == "https://app.test/?token=x")
        pool.goOffline()
        #expect(await pool.ask(.put, "/notes/2", fields, body: "x").status == 202)
        let kept = try #require(try await pool.operations().last?.request.fields)
        #expect(kept[.referer] == nil && kept[.userAgent] == "app")
    }

    @Test func whileTheUpstreamAnswersTheWriteGoesThrough() async throws {
        let pool = try ScriptedEngine(rule: { _ in .status(201, [.location: "/notes/1"], "made") })
        let reply = await pool.ask(.post, "/notes", [.contentType: "text/plain"], body: "shell")
        #expect(reply.status == 201 && reply.body == "made" && reply["Location"] == "/notes/1")
        #expect(reply.cacheStatus == "rockpool; fwd=method")
        #expect(pool.origin.sent.first?.text == "shell")
        #expect(pool.origin.sent.first?.head.fields[.idempotencyKey]?.first == "\"")
        #expect(try await pool.operations(Set(OperationState.allCases)).isEmpty)
    }

    @Test func whileItIsAwayTheWriteIsQueued() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        let told = Told(pool.engine.events)
        let reply = await pool.ask(.post, "/notes", [.contentType: "text/plain"], body: "shell")
        let operation = try #require(try await pool.operations().first)
        #expect(reply.status == 202 && reply["Rockpool-State"] == "pending" && reply["Rockpool-Operation"] == operation.id)
        #expect(reply["Location"] == "/.well-known/rockpool/operations/\(operation.id)")
        #expect(reply.json["id"] == .string(operation.id) && reply.cacheStatus == "rockpool; fwd=method; detail=queued")
        #expect(operation.body == .inline(Array("shell".utf8)) && operation.request.fields[.contentType] == "text/plain")
        #expect(pool.origin.sent.isEmpty && told.states == [.pending])
        #expect(pool.engine.statistics[.queued] == 1)
    }

    @Test func aWriteThatIsRefusedIsQueued() async throws {
        let pool = try ScriptedEngine(rule: { _ in .refused })
        let reply = await pool.ask(.post, "/notes", body: "x")
        #expect(reply.status == 202 && reply.proxyStatus?.contains("connection_refused") == true)
        let operation = try #require(try await pool.operations().first)
        #expect(operation.state == .pending && operation.firstSentAt == nil && operation.lastError == "connection_refused")
    }

    /// docs/outbox.md#resend-rule: a request that may have arrived is resent only where that is harmless.
    @Test(arguments: [
        (HTTPRequest.Method.put, IdempotencySettings.Honoured.unknown, OperationState.pending), (.delete, .no, .pending),
        (.post, .unknown, .uncertain), (.post, .no, .uncertain), (.post, .yes, .pending), (.patch, .unknown, .uncertain),
    ])
    func aLostAnswerIsJudgedByTheMethodAndTheKey(
        method: HTTPRequest.Method, honoured: IdempotencySettings.Honoured, state: OperationState
    ) async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.idempotency.honoured = honoured }], rule: { _ in .lost })
        let reply = await pool.ask(method, "/notes/1", body: "x")
        let operation = try #require(try await pool.operations().first)
        #expect(reply.status == 202 && reply["Rockpool-State"] == state.rawValue)
        #expect(operation.state == state && operation.reason == (state == .uncertain ? .lostAnswer : nil))
        #expect(operation.firstSentAt == pool.clock.now)
    }

    @Test(arguments: [HTTPRequest.Method.post, .put])
    func onlyWhatMayNotBeSentTwiceNeedsAConnectionOfItsOwn(method: HTTPRequest.Method) async throws {
        let pool = try ScriptedEngine()
        await pool.ask(method, "/notes/1", body: "x")
        #expect(pool.origin.sent.first?.isFreshConnection == (method == .post))
    }

    @Test(arguments: [(1 << 20, false), ((1 << 20) + 1, true)])
    func aBodyPastOneMiBIsAFile(size: Int, isBlob: Bool) async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        #expect(await pool.ask(.put, "/big", body: String(repeating: "x", count: size)).status == 202)
        let body = try #require(try await pool.operations().first?.body)
        if case .blob = body { #expect(isBlob) } else { #expect(!isBlob) }
        #expect(body.length == Int64(size))
    }

    @Test func aBlobIsSentWholeAndKeptNoLongerThanItsWrite() async throws {
        let (pool, large) = (try ScriptedEngine(), String(repeating: "ab", count: 800_000))
        #expect(await pool.ask(.put, "/big", body: large).status == 200)
        #expect(pool.origin.sent.first?.text == large)
        #expect(try await pool.operations(Set(OperationState.allCases)).isEmpty)
    }

    @Test func aBodyPastTheLimitIsNotQueued() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.queue.maxBody = ByteCount(10) }])
        #expect(await pool.ask(.put, "/a", body: "0123456789a").status == 200, "online, a body of that size is forwarded")
        pool.goOffline()
        #expect(await pool.ask(.put, "/a", body: "0123456789").status == 202)
        let refused = await pool.ask(.put, "/a", body: "0123456789a")
        #expect(refused.status == 413 && refused.json["type"] == "urn:rockpool:problem:body-too-large")
        #expect(try await pool.operations().count == 1)
    }

    @Test(arguments: [ByteCount(10), .mib(2)])
    func aChunkedBodyPastTheLimitIsNotQueuedEither(limit: ByteCount) async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.queue.maxBody = limit }])
        pool.goOffline()
        let body = BodyPipe(whole: ByteBuffer(repeating: 7, count: Int(limit.bytes) + 1))
        let request = RequestHead(method: .put, origin: .notes, target: "/a")
        let refused = await pool.ask(Exchange(request: request, body: body, bodyLength: nil))
        #expect(refused.status == 413)
        #expect(try await pool.operations().isEmpty)
    }

    /// docs/outbox.md#reachability: after a quick failure, one request per second may try the upstream.
    @Test(arguments: [(1 << 20) + 3, 9 << 20])
    func aTrialKeepsABodyOfUnknownLength(size: Int) async throws {
        let pool = try ScriptedEngine(rule: { _ in .refused })
        await pool.ask(.put, "/a", body: "x")
        let upload = { (path: String) in
            let request = RequestHead(method: .put, origin: .notes, target: path)
            return await pool.ask(
                Exchange(request: request, body: BodyPipe(whole: ByteBuffer(repeating: 7, count: size)), bodyLength: nil))
        }
        pool.clock.advance(by: .seconds(2))
        #expect(await upload("/b").status == 202)
        #expect(pool.origin.lines == ["PUT /a", "PUT /b"], "it has tried the upstream")
        #expect(try await pool.operations().contains { $0.body.length == Int64(size) })
        pool.clock.advance(by: .seconds(2))
        pool.origin.answers { .status(201, [:], "\($0.body.count)") }
        #expect(await upload("/c").body == "\(size)")
    }

    /// A body that was passed on as it came, and of which a part is gone, is not too large because the upstream has just left.
    @Test func whatWasPassedOnIsNotCalledTooLarge() async throws {
        let pool = try ScriptedEngine(rule: { _ in .refused })
        let body = BodyPipe(whole: ByteBuffer(repeating: 7, count: (1 << 20) + 3))
        let refused = await pool.ask(
            Exchange(request: RequestHead(method: .put, origin: .notes, target: "/a"), body: body, bodyLength: nil))
        #expect(refused.status == 503 && refused["Retry-After"] == "5")
        #expect(refused.json["type"] == "urn:rockpool:problem:not-queueable")
    }

    @Test func aBodyThatBreaksOffOnTheWayInGoesNowhere() async throws {
        let pool = try ScriptedEngine()
        let body = BodyPipe()
        body.offer(ByteBuffer(string: "half"))
        body.fail(TransferFailure(kind: .cancelled, sent: .no, detail: "the client left"))
        let request = RequestHead(method: .put, origin: .notes, target: "/a")
        #expect(await pool.ask(Exchange(request: request, body: body, bodyLength: 8)).status == 400)
        #expect(pool.origin.sent.isEmpty)
        #expect(try await pool.operations().isEmpty)
    }

    @Test(arguments: ["no-queue", "require-remote", "NO-QUEUE"])
    func aClientMayForbidQueueing(policy: String) async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        let reply = await pool.ask(.post, "/notes", [.own("Policy"): policy], body: "x")
        #expect(reply.status == 503 && reply["Retry-After"] == "5")
        #expect(reply.json["type"] == "urn:rockpool:problem:not-queueable")
        #expect(try await pool.operations().isEmpty)
    }

    @Test func aRouteMayForbidQueueing() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.routes = [Route(match: "POST /login", queue: .never)] }])
        pool.goOffline()
        #expect(await pool.ask(.post, "/login", body: "x").status == 503)
        #expect(await pool.ask(.post, "/notes", body: "x").status == 202)
    }

    @Test(arguments: [
        (TransferFailure.Kind.refused, TransferFailure.Sent.no, 502), (.dns, .no, 502), (.connectTimeout, .no, 504),
        (.firstByteTimeout, .yes, 504), (.reset, .maybe, 502),
    ])
    func aWriteToAnUndeclaredHostIsNeverQueued(kind: TransferFailure.Kind, sent: TransferFailure.Sent, status: Int) async throws {
        let pool = try ScriptedEngine(upstreams: [], rule: { _ in .failure(TransferFailure(kind: kind, sent: sent)) })
        #expect(await pool.ask(.post, "/notes", body: "x").status == status)
        #expect(try await pool.operations().isEmpty)
    }

    @Test func aBadCertificateIsNoReasonToQueue() async throws {
        let pool = try ScriptedEngine(rule: { _ in .badCertificate })
        let reply = await pool.ask(.post, "/notes", body: "x")
        #expect(reply.status == 502 && reply.proxyStatus?.contains("tls_certificate_error") == true)
        #expect(try await pool.operations().isEmpty)
    }

    @Test func aClientsKeyUsedTwiceIsOneOperation() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        let key: HTTPFields = [.idempotencyKey: "\"k-1\""]
        let first = await pool.ask(.post, "/notes", key, body: "x")
        let second = await pool.ask(.post, "/notes", key, body: "x")
        #expect(second.status == 202 && second["Rockpool-Operation"] == first["Rockpool-Operation"])
        let other = await pool.ask(.post, "/notes", key, body: "y")
        #expect(other.status == 422 && other.json["type"] == "urn:rockpool:problem:key-reused")
        #expect(try await pool.operations().map(\.idempotencyKey) == ["k-1"])
    }

    @Test(arguments: [("Idempotency-Key", true), ("X-Key", true), ("X-Key", false)])
    func aKeyHasAtMost255Bytes(name: String, isReachable: Bool) async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.idempotency.header = name }])
        if !isReachable { pool.goOffline() }
        let field = try #require(HTTPField.Name(name))
        for (length, status) in [(255, isReachable ? 200 : 202), (256, 400), (9_000, 400)] {
            let key = String(repeating: "k", count: length - 1)
            for value in [key + "a", "\"\(key)b\""] {
                #expect(await pool.ask(.post, "/notes", [field: value], body: "x").status == status, "\(length)")
            }
        }
    }

    @Test func aKeyIsItsOwnersAlone() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        for who in ["ann", "bob"] {
            #expect(await pool.ask(.post, "/notes", [.idempotencyKey: "k", .authorization: who], body: "of \(who)").status == 202)
        }
        #expect(try await pool.operations().count == 2)
    }

    @Test func aKeyUsedTwiceAtOnceIsOneOperationToo() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        let replies = await withTaskGroup(of: WholeReply.self) { group in
            for _ in 0..<16 { group.addTask { await pool.ask(.post, "/notes", [.idempotencyKey: "k"], body: "x") } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(replies.map(\.status) == Array(repeating: 202, count: 16))
        #expect(Set(replies.map { $0["Rockpool-Operation"] }).count == 1)
    }

    @Test func aWriteBehindAWaitingOneOfItsLaneWaitsToo() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        await pool.ask(.put, "/notes/1", body: "first")
        pool.comeOnline()
        #expect(await pool.ask(.put, "/notes/1", [.prefer: "wait=0"], body: "second").status == 202)
        #expect(await pool.ask(.put, "/notes/2", [.prefer: "wait=0"], body: "other").status == 200, "a write of another lane is sent")
        #expect(pool.origin.sent.map(\.text) == ["other"])
        #expect(try await pool.operations().count == 2)
    }

    @Test func aWriteGoesLiveOnceItsLaneHasEmptied() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        await pool.ask(.put, "/notes/1", body: "first")
        pool.comeOnline()
        async let second = pool.ask(.put, "/notes/1", [.prefer: "wait=20"], body: "second")
        try await eventually("the replayer sends the first") { await Replayer(engine: pool.engine).runOnce().delivered == 1 }
        #expect(await second.status == 200)
        #expect(pool.origin.sent.map(\.text) == ["first", "second"])
    }

    @Test func respondAsyncQueuesEvenOnline() async throws {
        let pool = try ScriptedEngine()
        #expect(await pool.ask(.post, "/notes", [.prefer: "return=minimal, respond-async"], body: "x").status == 202)
        #expect(pool.origin.sent.isEmpty)
    }

    /// RFC 7240: `wait` returns the real response when it arrives in time, else a 202; in both cases the write is on the disk first.
    @Test func respondAsyncWithWaitHoldsOnForTheAnswer() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.status(201, [.location: "/notes/7"], "made"))
        let replayer = Replayer(engine: pool.engine)
        async let reply = pool.ask(.post, "/notes", [.prefer: "respond-async, wait=20, return=minimal"], body: "x")
        while await replayer.runOnce().sent == 0 { await Task.yield() }
        let answer = await reply
        #expect(answer.status == 201 && answer.body == "made" && answer["Preference-Applied"] == "respond-async, wait=20")
        #expect(answer["Rockpool-State"] == "delivered" && pool.origin.sent.last?.head.fields[.prefer] == "return=minimal")
    }

    @Test func aWaitThatPassesIs202() async throws {
        let pool = try ScriptedEngine()
        let answer = await pool.ask(.post, "/notes", [.prefer: "respond-async, wait=0"], body: "x")
        #expect(answer.status == 202 && answer["Preference-Applied"] == "respond-async, wait=0")
    }

    @Test func theClientsWishesAreKeptWithTheOperation() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        await pool.ask(.post, "/notes", [.own("Priority"): "-100", .own("Expires"): "60", .own("Group"): "g"], body: "x")
        let operation = try #require(try await pool.operations().first)
        #expect(operation.priority == -100 && operation.expiresAt == pool.clock.now + .seconds(60))
        #expect(operation.request.fields.allSatisfy { !$0.name.canonicalName.hasPrefix("rockpool-") })
    }

    @Test func aLiveWritePassesOnItsKeyAsItCame() async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.post, "/notes", [.idempotencyKey: "bare"], body: "x")
        #expect(pool.origin.sent.first?.head.fields[.idempotencyKey] == "bare")
    }

    @Test(arguments: [HTTPRequest.Method.post, .put, .patch, .delete])
    func aRefusalOfTheUpstreamIsTheClients(method: HTTPRequest.Method) async throws {
        let pool = try ScriptedEngine(rule: { _ in .status(422, [:], "no") })
        let reply = await pool.ask(method, "/notes/1", body: "x")
        #expect(reply.status == 422 && reply.body == "no")
        #expect(try await pool.operations().isEmpty)
    }

    @Test func noSecretIsWritten() async throws {
        let secrets = ["bearer-5ecret", "cookie-5ecret", "apikey-5ecret"]
        let pool = try ScriptedEngine(upstreams: [
            .notes(), Upstream(name: "t", origin: OriginAddress(scheme: .http, host: "t.test"), identity: .header("X-Session")),
        ])
        let session = try #require(HTTPField.Name("X-Session"))
        pool.goOffline()
        _ = pool.engine.reachability.setMode(.offline, upstream: "t", now: pool.clock.now)
        let apiKey = try #require(HTTPField.Name("X-Api-Key"))
        await pool.ask(
            .post, "/notes", [.authorization: "Bearer bearer-5ecret", .cookie: "sid=cookie-5ecret", apiKey: "apikey-5ecret"],
            body: "planted")
        await pool.ask(.post, "/notes", [session: "session-5ecret"], body: "x", origin: OriginAddress(scheme: .http, host: "t.test"))
        #expect(try await pool.operations().count == 2)
        #expect(!pool.store.stateFiles(holding: "planted").isEmpty, "the search works: it finds text that is on the disk")
        for secret in secrets + ["session-5ecret"] { #expect(pool.store.stateFiles(holding: secret).isEmpty, "\(secret)") }
    }
}
