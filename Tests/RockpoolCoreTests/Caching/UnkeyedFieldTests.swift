// docs/security-model.md#unkeyed-inputs: what a field that no key holds means for the response, and the search for its value.
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct UnkeyedFieldTests {
    private static let kinds: [(UnkeyedField, [String])] = [
        (.overrides, ["X-Forwarded-Host", "X-Forwarded-User", "Forwarded", "X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override"]),
        (
            .selects,
            [
                "X-User-Id", "X-User", "Remote-User", "REMOTE_USER", "X-UserId", "x-auth-request-email", "X-MS-Client-Principal-Id",
                "X-Goog-Authenticated-User-Email", "CF-Access-Authenticated-User-Email", "Tailscale-User-Login", "X-WebAuth-User",
                "SSL-Client-DN", "X-SSL-Client-CN", "Client-Cert", "From", "X-Impersonate-User", "X-Roles", "X-Consumer-Username",
                "X-Tenant-ID", "X-Tenant", "Tenant", "X-Scope-OrgID", "X-Org-Id", "X-Account", "X-Company-Id", "X-Customer-Ref",
                "X-Workspace", "X-Project-Id", "X-Store-Code", "X-Device-Id", "X-UA-Device", "DeviceId", "X-Mobile-App",
                "CloudFront-Is-Mobile-Viewer", "CloudFront-Viewer-Country", "CF-IPCountry", "X-Country-Code", "X-Locale", "X-Currency",
                "X-Base-URL", "X-Path", "X-Script-Name", "X-Route", "X-Backend", "RSC", "Next-Url", "Next-Router-State-Tree", "HX-Request",
                "HX-Target", "Turbo-Frame", "X-PJAX", "X-Inertia", "X-Requested-With", "X-Api-Version", "X-Middleware-Prefetch",
                "X-HgArg-1", "X-HgProto-1",
            ]
        ),
        (
            .correlates,
            [
                "traceparent", "Tracestate", "baggage", "b3", "X-B3-TraceId", "X-B3-Sampled", "X-Request-Id", "X-Request-ID", "Request-Id",
                "X-Correlation-Id", "CorrelationId", "sentry-trace", "X-Amzn-Trace-Id", "X-Cloud-Trace-Context", "uber-trace-id",
                "X-Client-Trace-Id", "x-datadog-trace-id", "x-datadog-parent-id", "X-Transaction-Id", "X-Span-Id", "X-User-Request-Id",
                "x-ms-client-request-id", "newrelic", "elastic-apm-traceparent", "amz-sdk-invocation-id", "CF-Ray",
            ]
        ),
        (.describes, ["User-Agent", "Accept-Language"]),
        (
            .known,
            [
                "Accept", "Accept-Encoding", "Referer", "Origin", "If-None-Match", "Range", "Cache-Control", "Sec-Fetch-Site",
                "Sec-CH-UA", "Sec-Fetch-User", "DNT", "Upgrade-Insecure-Requests", "Content-Type",
                "Proxy-Authorization", "Rockpool-Policy", "Access-Control-Request-Headers",
            ]
        ),
        (
            .identifies,
            [
                "Cookie", "Authorization", "X-Api-Key", "X_API_KEY", "Ocp-Apim-Subscription-Key", "X-Shopify-Access-Token", "X-Vault-Token",
                "X-Redmine-API-Key", "X-Auth-Key", "X-MBX-APIKEY", "X-Parse-Session-Token", "Job-Token", "X-Client-Secret", "X-User-Token",
                "X-Forms-JWT", "X-Acme-Password", "X-Authorization",
            ]
        ),
        (
            .overrides,
            ["X_Forwarded_Host", "X-Http_Method-Override", "Accept_Language", "User_Agent", "If_None_Match", "X-Forwarded-Access-Token"]
        ), (.selects, ["Host", "X_User_Id", "HX_Request", "x_tenant"]),
        (
            .unknown,
            [
                "X-Page-Token", "X-Continuation-Token", "X-Recaptcha-Token", "X-Cache-Key", "X-Encryption-Key", "X-Idempotency-Key",
                "X-Xsrf-Token", "X-Keyboard", "X-Token-Kind", "X-Session-Id", "Surrogate-Key",
            ]
        ),
        (.known, ["Idempotency-Key", "Sec-WebSocket-Key", "Lock-Token"]),
        (.unknown, ["X-Client-Version", "X-Foo", "npm-session", "X-Csrf-Token", "X-Nonce", "Superuser", "X-Thread", "X-Requested-On"]),
    ]

    @Test(arguments: kinds) func everyNameHasAKind(kind: UnkeyedField, names: [String]) throws {
        for name in names { #expect(UnkeyedField(try #require(HTTPField.Name(name))) == kind, "\(name)") }
    }

    @Test(arguments: [
        ("X-Forwarded-Access-Token", true), ("X_Forwarded_Access_Token", true), ("X_CSRF_Token", true), ("DPoP", true),
        ("X-Acme-Key", true), ("X-Forwarded-Host", false), ("Idempotency-Key", false), ("X-Cache-Key", false), ("X-User-Id", false),
    ]) func secretsAreToldByTheirNames(name: String, isSecret: Bool) throws {
        #expect(SecretFields.contains(try #require(HTTPField.Name(name))) == isSecret)
    }

    @Test(arguments: ["X-HTTP-Method-Override", "X_HTTP_Method", "x-method_override"]) func anotherMethodIsSeen(name: String) throws {
        #expect(UnkeyedField.replacesMethod(in: [try #require(HTTPField.Name(name)): "PUT"]))
    }

    @Test func noKnownNameIsTakenFromTheFieldsThatDecide() {
        for (name, kind) in UnkeyedField.names where kind == .known {
            #expect(!PlainFields.decidingPrefixes.contains { name.hasPrefix($0) }, "\(name)")
        }
    }

    /// The prepared replies are found by the bytes of these fields, as by a credential.
    @Test(arguments: ["X-User-Id", "Remote-User", "RSC", "x-tenant", "HX-Request", "X-Acme-Key", "x_user_id"])
    func whatSelectsIsPartOfAPlainRequest(
        name: String
    ) throws {
        let text = "GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: a\r\ntraceparent: b\r\nX-Client-Version: 1\r\n\(name): one\r\n\r\n"
        let bytes = Array(text.utf8)
        let read = FastPathRequest(bytes.span, limits: ClientLimits())
        let plain = try #require(read)
        #expect(plain.lines.credentialLines.map { String(decoding: bytes[$0], as: UTF8.self) } == ["\(name): one"])
    }

    // MARK: selection

    private func head(_ response: String, for request: String) -> StoredResponse {
        let sent = CachingFixture.request(request)
        let head = ImpliedVary.completed(CachingFixture.response(response), for: sent, isPrivate: false)
        return StoredResponse(
            head: head, requestFields: Vary.selectingFields(response: head, request: sent) ?? [:], requestTime: CachingFixture.start,
            responseTime: CachingFixture.start)
    }

    @Test(arguments: [
        ("", "", true), ("", "X-User-Id: ann", false), ("X-User-Id: ann", "", false), ("X-User-Id: ann", "X-User-Id: bob", false),
        ("X-User-Id: ann", "x-user-id: ann", true), ("traceparent: 1 | X-Request-Id: 1", "traceparent: 2 | X-Request-Id: 3", true),
        ("", "X-Client-Version: 4.2.1", true), ("X-Client-Version: 4.2.1", "X-Client-Version: 4.2.2", true),
        ("User-Agent: a", "User-Agent: b", true),
        ("RSC: 1", "", false), ("X_User_Id: ann", "X_User_Id: bob", false), ("Authorization: Bearer t", "Authorization: Bearer t", true),
        ("Authorization: Bearer t | X-Acme-Key: a", "Authorization: Bearer t | X-Acme-Key: a", true),
        ("Authorization: Bearer t", "Authorization: Bearer t | X-Acme-Key: a", true),
    ]) func aResponseIsForThoseWhoSelectIt(stored: String, request: String, isUsed: Bool) {
        let response = head("Content-Type: text/html | Cache-Control: max-age=60", for: stored)
        #expect(Vary.matches(stored: response, request: CachingFixture.request(request)) == isUsed)
        let other = head("Content-Type: text/html | Content-Language: de | Vary: Accept-Language", for: stored)
        let away = ReuseContext(policy: .offlineFirst, isReachable: false)
        let asked = CachingFixture.request([request, "Accept-Language: de"].filter { !$0.isEmpty }.joined(separator: " | "))
        let decision = Reuse.decide(candidates: [other], request: asked, context: away, now: CachingFixture.at(1))
        #expect((decision == .none(.varyMiss)) != isUsed, "\(decision)")
    }

    @Test(arguments: [
        ("X-Foo: evil.test", "Link: <https://EVIL.test/a>", ["x-foo"]), ("X-Foo: evil.test", "Link: <https://good.test/a>", []),
        ("X-Request-Id: 0123456789", "X-Request-Id: 0123456789", []), ("traceparent: 00-abcdef", "X-Trace: 00-abcdef", []),
        ("Accept: text/html", "Content-Type: text/html", []), ("Referer: https://a/b", "Link: <https://a/b>", []),
        ("User-Agent: Mozilla/5.0 x", "X-Seen: Mozilla/5.0 x", ["user-agent"]), ("X-Foo: 1", "X-Bar: 1", []),
        ("X-Foo: true", "X-Bar: true", []),
        ("X-Foo: prod", "X-Bar: product", []), ("X-Foo: prod", "X-Bar: a-prod", ["x-foo"]), ("X-Foo: evil", "Vary: evil", ["evil"]),
    ]) func aHeadThatRepeatsAValueVariesByIt(request: String, response: String, names: [String]) {
        let head = ImpliedVary.completed(CachingFixture.response(response), for: CachingFixture.request(request), isPrivate: false)
        #expect(head.fields[values: .vary] == names)
    }

    @Test func anotherVariantByAnEchoLeavesThoseBeforeInUse() {
        let good = head("Content-Type: text/html | Cache-Control: max-age=60", for: "")
        let evil = head("Content-Type: text/html | Cache-Control: max-age=60 | X-Seen: evil.test", for: "X-Foo: evil.test")
        let decision = Reuse.decide(
            candidates: [evil, good], request: CachingFixture.request(), context: ReuseContext(), now: CachingFixture.at(1))
        guard case .fresh(1, _) = decision else { return #expect(Bool(false), "\(decision)") }
    }
}

@Suite struct EchoSearchTests {
    private func found(_ value: String, of name: String = "X-Foo", in pieces: [String]) -> Bool {
        var search = EchoSearch(for: CachingFixture.request("\(name): \(value)"))
        for piece in pieces { search?.read(Array(piece.utf8).span) }
        search?.end()
        return search?.found.isEmpty == false
    }

    @Test(arguments: [
        ("evil.test", "<a href=//evil.test>", true), ("Evil.Test", "host: evil.test", true), ("evil.test", "evil-test evil.tes", false),
        ("a\"b<c>&d", "<p>a&quot;b&lt;c&gt;&amp;d</p>", true), ("say \"hello\"", #"{"a": "say \"hello\""}"#, true),
        ("https://evil/x", #"{"u":"https:\/\/evil\/x"}"#, true), ("https://evil/x", "?u=https%3A%2F%2Fevil%2Fx", true),
        ("aabaaabaab", "aabaabaaabaabx", true), ("aaaaaaaab", "aaaaaaaaaaaab", true), ("aaaaaaaab", "aaaaaaaaaaaac", false),
        ("evil", "devil evils", false), ("evil", "an evil", true), ("evil", "evil", true), ("4.2.1", "v 4.4.2.1", true),
        ("evil", "evil evil", true),
        ("null", "null", false), ("abc", "abc", false), ("ios-17", "\"ios-17\"", true),
    ]) func findsAValueWholeOrEscaped(value: String, text: String, isThere: Bool) {
        #expect(found(value, in: [text]) == isThere)
        // However the bytes arrive.
        #expect(found(value, in: text.map { String($0) }) == isThere)
    }

    @Test func findsTheBeginningOfALongValueOnly() {
        let value = String(repeating: "0123456789abcdef", count: 64)
        #expect(found(value, in: ["x" + value]))
        #expect(!found(value, in: [String(value.dropFirst(1024 - 62))]))
    }

    @Test(arguments: ["traceparent", "X-Request-Id", "Accept", "Referer", "Cookie", "Authorization", "X-User-Id", "Sec-CH-UA"])
    func nothingIsSearchedForOtherFields(name: String) {
        #expect(EchoSearch(for: CachingFixture.request("\(name): some/value")) == nil)
    }

    @Test func whatCannotBeReadMayRepeatAnyUnknownField() {
        var search = EchoSearch(for: CachingFixture.request("User-Agent: Mozilla/5.0 | X-Foo: something | X-Request-Id: 12345"))
        search?.cannotRead()
        #expect(search?.found.map(\.canonicalName) == ["x-foo"])
        let many = (0..<40).map { "X-Foo\($0): \"a/b\\c&\($0)\"" }.joined(separator: " | ")
        #expect(EchoSearch(for: CachingFixture.request(many))?.found.isEmpty == false)
    }

    @Test(arguments: [
        ("Content-Type: text/html", 200, "plain"), ("", 200, "plain"), ("Content-Type: image/png", 200, "media"),
        ("Content-Type: image/svg+xml", 200, "plain"), ("Content-Type: text/html | Content-Encoding: gzip", 200, "coded"),
        ("Content-Type: text/html | Content-Encoding: compress", 200, "unreadable"), ("Content-Encoding: gzip", 206, "unreadable"),
        ("Content-Type: video/mp4", 206, "media"),
    ]) func whatOfAResponseIsSearched(response: String, status: Int, content: String) {
        #expect("\(EchoSearch.content(of: CachingFixture.response(response, status: status)))" == content)
    }

    /// A value and a body that are made for each other cost no more than any.
    @Test func isLinear() {
        var search = EchoSearch(for: CachingFixture.request("X-Foo: \(String(repeating: "a", count: 62))b"))
        let body = [UInt8](repeating: UInt8(ascii: "a"), count: 1 << 20)
        let began = ContinuousClock.now
        search?.read(body.span)
        #expect(search?.found.isEmpty == true && ContinuousClock.now - began < .seconds(20))
    }

    /// As a slow search of each text by itself, whatever texts there are and however the bytes arrive.
    @Test(arguments: UInt64(1)...40) func agreesWithASlowSearch(seed: UInt64) {
        var random = SimulationRandom(seed: seed)
        func text(_ lengths: ClosedRange<Int>) -> [UInt8] {
            (0..<random.number(lengths)).map { _ in Array("abA-1".utf8)[random.number(0...4)] }
        }
        for _ in 0..<50 {
            let texts = (0..<random.number(1...6)).map { TextSearch.Text(bytes: text(1...9), owner: $0, isWord: random.chance(0.5)) }
            let body = text(0...60)
            var search = TextSearch(texts)
            var rest = body[...]
            while !rest.isEmpty {
                let piece = Array(rest.prefix(random.number(1...7)))
                search.read(piece.span)
                rest = rest.dropFirst(piece.count)
            }
            search.end()
            let expected = texts.filter { Self.isThere($0, in: body) }.reduce(UInt64(0)) { $0 | 1 << UInt64($1.owner) }
            #expect(search.found == expected, "\(String(decoding: body, as: UTF8.self)): \(texts)")
        }
    }

    private static func isThere(_ text: TextSearch.Text, in body: [UInt8]) -> Bool {
        let (body, wanted) = (body.map(FieldByte.lowercased), text.bytes.map(FieldByte.lowercased))
        guard body.count >= wanted.count else { return false }
        func goesOn(_ place: Int) -> Bool { body.indices.contains(place) && FieldByte.isLetterOrDigit(body[place]) }
        return (0...body.count - wanted.count).contains { start in
            guard Array(body[start..<start + wanted.count]) == wanted else { return false }
            let isBegin = !(goesOn(start - 1) && goesOn(start))
            return !text.isWord || isBegin && !goesOn(start + wanted.count)
        }
    }
}
