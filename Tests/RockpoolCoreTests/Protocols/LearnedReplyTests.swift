// docs/outbox.md#replies, docs/outbox.md#repeats: the form of the reply to a queued write, and what makes two requests one write.
import HTTPTypes
import RockpoolCore
import Testing

private func request(_ method: HTTPRequest.Method, _ target: String, _ fields: HTTPFields = [:]) -> RequestHead {
    RequestHead(method: method, origin: OriginAddress(scheme: .http, host: "api.example"), target: target, fields: fields)
}

@Suite struct LearnedReplyTests {
    @Test(
        arguments: [
            // Nothing but the status.
            (204, true, [:], 204), (204, false, [:], 204), (205, true, [:], 205), (200, true, [:], 200), (201, true, [:], 201),
            (204, true, [.contentType: "text/html"], 204), (201, true, [.eTag: "\"1\""], 201),
            // Something: content, an address, a session, or a status that says more.
            (200, false, [:], nil), (201, false, [:], nil), (201, true, [.location: "/a/1"], nil), (204, true, [.location: "/a/1"], nil),
            (204, true, [.setCookie: "a=b"], nil), (202, true, [:], nil), (206, true, [:], nil), (207, true, [:], nil),
            (203, true, [:], nil),
        ] as [(Int, Bool, HTTPFields, Int?)])
    func anAnswerIsTheReplyToTheNextIfItCarriesNothing(status: Int, isEmpty: Bool, fields: HTTPFields, learned: Int?) {
        let shown = EmptyAnswers.shown(by: ResponseHead(status: status, fields: fields), isEmpty: isEmpty, rule: nil)
        #expect(shown == .some(learned))
    }

    @Test(arguments: [100, 301, 302, 304, 400, 401, 404, 409, 422, 429, 500, 503, 511])
    func nothingIsLearnedFromWhatIsNoSuccess(status: Int) {
        #expect(EmptyAnswers.shown(by: ResponseHead(status: status), isEmpty: true, rule: nil) == .none)
    }

    @Test func nothingIsLearnedFromARefusalByTheRouteRule() {
        let rule = SuccessRule(status: [201])
        #expect(EmptyAnswers.shown(by: ResponseHead(status: 204), isEmpty: true, rule: rule) == .none)
        #expect(EmptyAnswers.shown(by: ResponseHead(status: 201), isEmpty: true, rule: rule) == .some(201))
    }

    @Test func theNewestAnswerToARouteCounts() {
        var answers = EmptyAnswers()
        let route = WriteRoute(name: "POST /a")
        #expect(answers.note(nil, for: route) == [] && answers.status(for: route) == nil)
        #expect(
            answers.note(AnswerForm(status: 204), for: route) == [.init(route: route, status: 204)] && answers.status(for: route) == 204)
        #expect(answers.note(AnswerForm(status: 204), for: route) == [])
        #expect(
            answers.note(AnswerForm(status: 200), for: route) == [.init(route: route, status: 200)] && answers.status(for: route) == 200)
        #expect(answers.note(nil, for: route) == [.init(route: route, status: nil)] && answers.status(for: route) == nil)
    }

    @Test func theOldestRouteMakesRoom() {
        var answers = EmptyAnswers()
        for n in 0..<EmptyAnswers.limit { _ = answers.note(AnswerForm(status: 204), for: WriteRoute(name: "POST /\(n)")) }
        _ = answers.note(AnswerForm(status: 200), for: WriteRoute(name: "POST /0"))
        let changes = answers.note(AnswerForm(status: 204), for: WriteRoute(name: "POST /new"))
        #expect(
            changes == [.init(route: WriteRoute(name: "POST /new"), status: 204), .init(route: WriteRoute(name: "POST /1"), status: nil)])
        #expect(answers.status(for: WriteRoute(name: "POST /0")) == 200 && answers.status(for: WriteRoute(name: "POST /1")) == nil)
    }

    @Test(
        arguments: [
            (.post, "/write?db=a", nil, "POST /write"), (.post, "/a/17/read", nil, "POST /a/17/read"), (.post, "/", nil, "POST /"),
            (.put, "/files/a.txt", nil, "PUT /files/*"), (.delete, "/files/a/", nil, "DELETE /files/*"), (.put, "/a", nil, "PUT /a"),
            (.patch, "/files/a.txt?x=1", nil, "PATCH /files/*"),
            (HTTPRequest.Method("MKCOL") ?? .put, "/files/a/b", nil, "MKCOL /files/a/*"),
            (.post, "/a/17/read", "POST /a/*/read", "POST /a/*/read"), (.post, "/a/17/read", "/a/*/read", "POST /a/*/read"),
            // A pattern for any depth covers endpoints with different answers.
            (.post, "/a/17/read", "/**", "POST /a/17/read"), (.post, "/a/17/read", "POST /a/**", "POST /a/17/read"),
        ] as [(HTTPRequest.Method, String, String?, String)])
    func routesOfAnUpstream(method: HTTPRequest.Method, target: String, pattern: String?, name: String) {
        var upstream = Upstream(name: "a", origin: OriginAddress(scheme: .http, host: "api.example"))
        if let pattern { upstream.routes = [Route(match: pattern)] }
        #expect(route(of: request(method, target), at: upstream) == WriteRoute(name: name))
    }

    @Test(
        arguments: [
            (.post, "/notes", "POST /notes"), (.put, "/notes/17", "PUT /notes/{id}"), (.delete, "/notes/18", "DELETE /notes/{id}"),
            (.post, "/notes/17/publish", "POST /notes/{id}/publish"), (.post, "/notes/18/close", "POST /notes/{id}/close"),
        ] as [(HTTPRequest.Method, String, String)])
    func routesOfADeclaredResource(method: HTTPRequest.Method, target: String, name: String) {
        var upstream = Upstream(name: "a", origin: OriginAddress(scheme: .http, host: "api.example"))
        upstream.resources = [Resource(collection: "/notes", item: "/notes/{id}")]
        #expect(route(of: request(method, target), at: upstream) == WriteRoute(name: name))
    }

    @Test(
        arguments: [
            ("return=minimal", "PUT /notes/{id} return=minimal"),
            ("respond-async, Return=\"representation\"; a=1", "PUT /notes/{id} return=representation"),
            ("return=minimal, return=representation", "PUT /notes/{id} return=minimal"), ("wait=5", "PUT /notes/{id}"),
            ("return=1/2", "PUT /notes/{id}"), ("return", "PUT /notes/{id}"),
        ])
    func thePreferredReturnIsPartOfTheRoute(preferences: String, name: String) {
        var upstream = Upstream(name: "a", origin: OriginAddress(scheme: .http, host: "api.example"))
        upstream.resources = [Resource(collection: "/notes", item: "/notes/{id}")]
        var put = request(.put, "/notes/17")
        put.fields[.prefer] = preferences
        #expect(route(of: put, at: upstream) == WriteRoute(name: name))
    }

    private func route(of request: RequestHead, at upstream: Upstream) -> WriteRoute {
        var configuration = Configuration()
        configuration.upstreams = [upstream]
        return WriteRoute(of: request, plan: RouteTable(configuration).plan(for: request))
    }

    @Test func whatIsSetByHandComesFirst() {
        let post = request(.post, "/a")
        func form(_ set: OfflineResponse?, _ resource: Resource.OfflineResponse? = nil, isResource: Bool = false) -> QueuedReply {
            var route = Route(match: "/a")
            route.offlineResponse = set
            let declared = isResource ? Resource(collection: "/a", offlineResponse: resource) : nil
            return QueuedReply(to: post, route: route, resource: declared, learned: 204)
        }
        #expect(form(nil) == .bare(status: 204) && form(.optimistic) == .bare(status: 204) && form(.accepted) == .document)
        #expect(form(nil, isResource: true) == .bare(status: 204))
        #expect(form(nil, .accepted, isResource: true) == .document && form(nil, .optimistic, isResource: true) == .document)
        let ok = FixedReply(status: 200, type: "text/plain", body: "ok")
        #expect(form(.fixed(ok)) == .fixed(ok) && form(.fixed(ok), .accepted, isResource: true) == .fixed(ok))
        #expect(QueuedReply(to: post, route: nil, learned: nil) == .document)
    }

    @Test func onlyAcceptancesAreRepeated() {
        let acceptances: [QueuedReply] = [.document, .empty, .graphQL(isOptimistic: false)]
        #expect(acceptances.map(\.isAcceptance) == [true, true, true])
        let own: [QueuedReply] = [.graphQL(isOptimistic: true), .s3(status: 200), .bare(status: 204), .fixed(FixedReply(status: 202))]
        #expect(own.map(\.isAcceptance) == [false, false, false, false])
    }
}

@Suite struct RepeatMarkTests {
    @Test func isReadAsItWasWritten() {
        for count in [0, 1, 400] { #expect(RepeatMark(of: [.rockpoolRepeat: RepeatMark(count: count).text]) == RepeatMark(count: count)) }
        for text in ["", "x", "-1", "1;a"] { #expect(RepeatMark(of: [.rockpoolRepeat: text]) == nil, "\(text)") }
        #expect(RepeatMark(of: [:]) == nil)
    }

    @Test(arguments: [
        // Of one sending.
        ("Date", "Sat, 28 Nov 2026 16:00:00 GMT", true), ("traceparent", "00-1-1-01", true), ("X-Request-Id", "7", true),
        ("X-B3-TraceId", "1", true), ("sentry-trace", "1", true), ("X-Retry-Count", "1", true), ("x-stainless-retry-count", "1", true),
        ("amz-sdk-request", "attempt=2", false), ("X-Amz-Date", "20261128T160000Z", true), ("Cookie", "a=b", true),
        ("User-Agent", "b", true), ("Via", "1.1 b", true), ("CDN-Loop", "b", true), ("X-Correlation-Id", "1", true),
        ("Rockpool-Repeat", "3", true),
        // What the write is, and for whom.
        ("X-Scope-OrgID", "tenant-2", false), ("Rockpool-Client", "127.0.0.2", false), ("Content-Type", "text/plain", false),
        ("If-None-Match", "*", false),
        ("X-GitHub-Event", "push", false), ("Prefer", "return=minimal", false), ("PayPal-Request-Id", "1", false),
        ("X-Idempotency-Key", "1", false), ("Rockpool-Callback", "http://a/", false), ("Content-Encoding", "gzip", false),
    ])
    func fieldsOfOneSendingDoNotMatter(name: String, value: String, areEqual: Bool) throws {
        let first: HTTPFields = [.accept: "*/*", .contentType: "application/json"]
        var second = first
        second[try #require(HTTPField.Name(name))] = value
        #expect(RepeatMark.areEqual(first, second) == areEqual && RepeatMark.areEqual(second, first) == areEqual)
        #expect(RepeatMark.areEqual(first, first))
    }
}
