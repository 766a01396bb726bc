// RFC 9111 §3 and docs/security-model.md#whose-response: storable responses, their partitions, and the reasons for refusing others.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct StorabilityTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var response: String
        var expected: Expected
        var status = 200
        var request = ""
        var method = HTTPRequest.Method.get
        var context = StorageContext()
        var testDescription: String { "\(method) \(request) → \(status) \(response) (\(context.policy), \(context.identity ?? "nil"))" }
    }

    enum Expected: Sendable { case shared, own(String), refused(Storability.Reason) }

    private func check(_ given: Case) {
        let decision = Storability.decide(
            request: CachingFixture.request(given.request, method: given.method),
            response: CachingFixture.response(given.response, status: given.status), context: given.context)
        switch (given.expected, decision) {
        case (.shared, .store(let plan)): #expect(plan.partition == .shared)
        case (.own(let name), .store(let plan)): #expect(plan.partition == .identity(name))
        case (.refused(let reason), .refuse(let given)): #expect(given == reason)
        default: Issue.record("\(given.testDescription): \(decision)")
        }
    }

    @Test(arguments: [
        Case(response: "", expected: .shared), Case(response: "Cache-Control: max-age=60", expected: .shared),
        Case(response: "Cache-Control: max-age=0", expected: .shared), Case(response: "Expires: @60", expected: .shared),
        Case(response: "Cache-Control: no-store", expected: .refused(.noStore)),
        Case(response: "Cache-Control: max-age=60 | Cache-Control: No-Store", expected: .refused(.noStore)),
        Case(response: "Cache-Control: max-age=60", expected: .refused(.requestNoStore), request: "Cache-Control: no-store"),
        Case(response: "Cache-Control: no-cache", expected: .refused(.neverReusable)),
        Case(response: "Cache-Control: no-cache", expected: .shared, context: StorageContext(overridesFreshness: true)),
        Case(
            response: "Cache-Control: private, no-cache", expected: .refused(.isPrivate), context: StorageContext(overridesFreshness: true)),
        Case(response: "Cache-Control: no-cache | ETag: \"a\"", expected: .shared),
        Case(response: "Cache-Control: no-cache, max-age=60", expected: .refused(.neverReusable)),
        Case(response: "Cache-Control: no-cache=\"x\", max-age=60", expected: .shared),
        Case(response: "Cache-Control: max-age=60 | Vary: *", expected: .refused(.varyStar)),
        Case(response: "Cache-Control: max-age=60 | Vary: Accept, *", expected: .refused(.varyStar)),
        Case(response: "Cache-Control: max-age=60 | Vary: Accept", expected: .shared),
        Case(response: "Rockpool-Cache-Control: max-age=60 | Cache-Control: no-store", expected: .shared),
        Case(response: "Rockpool-Cache-Control: no-store | Cache-Control: max-age=60", expected: .refused(.noStore)),
        // Methods.
        Case(response: "Cache-Control: max-age=60", expected: .refused(.method), method: .head),
        Case(response: "Cache-Control: max-age=60", expected: .refused(.method), method: .post),
        Case(response: "Cache-Control: max-age=60", expected: .refused(.method), method: .delete),
        Case(
            response: "Cache-Control: max-age=60", expected: .shared, method: .post,
            context: StorageContext(hasBody: true, cachesByBody: true)),
        Case(response: "Cache-Control: max-age=60", expected: .refused(.requestBody), context: StorageContext(hasBody: true)),
        // must-understand (§5.2.2.3).
        Case(response: "Cache-Control: max-age=60, must-understand, no-store", expected: .shared),
        Case(response: "Cache-Control: max-age=60, must-understand", expected: .refused(.notUnderstood), status: 299),
        Case(response: "Cache-Control: max-age=60, must-understand, no-store", expected: .refused(.notUnderstood), status: 599),
        // Route and strategy.
        Case(response: "Cache-Control: max-age=60", expected: .refused(.route), context: StorageContext(rule: .never)),
        Case(response: "Cache-Control: max-age=60", expected: .refused(.route), context: StorageContext(strategy: .networkOnly)),
        Case(response: "Cache-Control: no-store", expected: .shared, context: StorageContext(rule: .always)),
        Case(response: "Cache-Control: no-store, private", expected: .refused(.isPrivate), context: StorageContext(rule: .always)),
        Case(response: "Cache-Control: no-store", expected: .own("ann"), context: StorageContext(identity: "ann", rule: .always)),
        Case(response: "", expected: .refused(.requestNoStore), request: "Cache-Control: no-store", context: StorageContext(rule: .always)),
    ])
    func permission(_ given: Case) { check(given) }

    @Test(arguments: [200, 203, 204, 300, 301, 308, 404, 410])
    func heuristicStatuses(_ status: Int) {
        check(Case(response: "", expected: .shared, status: status))
    }

    @Test(arguments: [
        201, 202, 205, 299, 302, 303, 307, 400, 402, 403, 409, 413, 418, 421, 425, 429, 431, 500, 502, 503, 504, 599,
    ])
    func otherStatusesNeedFreshnessOfTheirOwn(_ status: Int) {
        for fields in ["ETag: \"a\"", "Last-Modified: @-1000"] {
            let decision = Storability.decide(
                request: CachingFixture.request(), response: CachingFixture.response(fields, status: status), context: StorageContext())
            #expect(decision == .refuse(.status) || decision == .refuse(.notCacheable))
        }
        for fields in ["Cache-Control: max-age=60", "Cache-Control: s-maxage=60", "Expires: @60"] {
            check(Case(response: fields, expected: .shared, status: status))
        }
    }

    @Test(arguments: [100, 101, 103, 304, 401, 407, 416, 600, 0, -1])
    func neverStoredStatuses(_ status: Int) {
        check(Case(response: "Cache-Control: public, max-age=60 | ETag: \"a\"", expected: .refused(.status), status: status))
        check(
            Case(
                response: "", expected: .refused(.status), status: status,
                context: StorageContext(policy: .offlineFirst, rule: .always)))
    }

    /// RFC 9110 §15.1 permits heuristic freshness for these; docs/security-model.md#whose-response requires that no unusual part of the
    /// request can have provoked them.
    @Test(arguments: [405, 414, 501])
    func provocableStatusesAreGuessedAboutOnlyForPlainRequests(_ status: Int) {
        let large = "X: " + String(repeating: "x", count: 5000)
        check(Case(response: "Last-Modified: @-1000", expected: .shared, status: status))
        check(Case(response: "Last-Modified: @-1000", expected: .refused(.status), status: status, request: large))
        check(Case(response: "Last-Modified: @-1000", expected: .refused(.overrideHeader), status: status, request: "X-HTTP-Method: PUT"))
        check(Case(response: "ETag: \"a\"", expected: .refused(.status), status: status))
        check(Case(response: "", expected: .refused(.status), status: status, context: Self.offline))
        check(Case(response: "Cache-Control: max-age=60", expected: .refused(.status), status: status, request: large))
    }

    /// docs/security-model.md#poisoned-errors: whatever freshness an error declares, it is not stored for others if an unusual request may
    /// have provoked it.
    @Test(arguments: [400, 403, 404, 405, 412, 413, 414, 415, 417, 431, 500, 501, 502, 503])
    func errorsAreNotStoredForOddRequests(_ status: Int) {
        let fields = "Cache-Control: public, max-age=600"
        check(Case(response: fields, expected: .shared, status: status, request: "User-Agent: " + String(repeating: "x", count: 3000)))
        for odd in [
            "X: " + String(repeating: "x", count: 5000), "Range: bytes=cow", "If-Match: \"a\"", "Expect: 100-continue", "Content-Type: x/y",
            "Max-Forwards: 1",
        ] {
            check(Case(response: fields, expected: .refused(.status), status: status, request: odd))
            check(Case(response: fields, expected: .refused(.status), status: status, request: odd, context: Self.offline))
            check(Case(response: fields, expected: .shared, request: odd))
        }
    }

    /// An error is shared only if its request has ordinary fields of browsers and common clients, and no directive that insists on the
    /// origin.
    @Test(arguments: [400, 403, 404, 410, 431, 451, 501, 503])
    func errorsAreForOthersOnlyInAnswerToOrdinaryRequests(_ status: Int) {
        let fields = "Cache-Control: public, max-age=600"
        let browser = "Accept: */* | Accept-Language: de | Sec-Fetch-Mode: cors | sec-ch-ua: x | User-Agent: x | If-None-Match: \"a\""
        for ordinary in ["", browser, "Cache-Control: x, only-if-cached | Pragma: x", "Via: 1.1 us | CDN-Loop: us"] {
            check(Case(response: fields, expected: .shared, status: status, request: ordinary))
            check(Case(response: fields, expected: .own("ann"), status: status, request: ordinary, context: Self.ann))
        }
        for odd in [
            "X-Odd: 1", "Translate: f", "Accept: */* | RSC: 1", "Cache-Control: no-cache", "Cache-Control: max-age=0", "Pragma: no-cache",
            "Cache-Control: min-fresh=9", "Authorization: x", "Cookie: x", "Via: 1.0 x | Via: 1.1 us",
        ] {
            check(Case(response: fields, expected: .refused(.status), status: status, request: odd))
            check(Case(response: fields, expected: .refused(.status), status: status, request: odd, context: Self.offline))
            let ownFreshness = "Cache-Control: private | Last-Modified: @-1000"
            check(Case(response: ownFreshness, expected: .refused(.status), status: status, request: odd, context: Self.offline))
            check(Case(response: fields, expected: .own("ann"), status: status, request: odd, context: Self.ann))
            check(Case(response: fields, expected: .shared, request: odd))
        }
    }

    /// A reload, and apt, ask with `max-age=0`: what is lacking is lacking for others too, while the upstream is away and never online.
    @Test(arguments: [404, 410]) func errorsThatAreNeverFreshAreForOthersInAnswerToReloads(_ status: Int) {
        for reload in ["Cache-Control: max-age=0", "Cache-Control: no-cache", "Pragma: no-cache"] {
            let kept = StorageContext(policy: .offlineFirst)
            check(Case(response: "", expected: .shared, status: status, request: reload, context: kept))
            check(Case(response: "Last-Modified: @-1000", expected: .refused(.status), status: status, request: reload, context: kept))
            check(Case(response: "", expected: .refused(.status), status: status, request: reload + " | X-Odd: 1", context: kept))
            let assigned = StorageContext(policy: .offlineFirst, assignsFreshness: true)
            check(Case(response: "", expected: .refused(.status), status: status, request: reload, context: assigned))
        }
    }

    /// Web cache deception: a page under a static-looking name is never shared when its first reader was logged in.
    @Test(arguments: ["/account/x.css", "/account%2fx.CSS", "/account;x.js", "/account%00.jpg", "/account%3f.png?a=b", "/a%0a.woff2"])
    func deceptivePathsAreTheirReadersOwn(_ target: String) {
        let fields = "Cache-Control: public, max-age=600"
        for (type, isDeceptive) in [("text/html; charset=utf-8", true), ("application/json", true), ("text/css", false)] {
            var request = CachingFixture.request()
            request.target = target
            let response = CachingFixture.response(fields + " | Content-Type: \(type)", status: 200)
            guard case .store(let plan) = Storability.decide(request: request, response: response, context: Self.ann) else {
                Issue.record("\(target) \(type) must be stored")
                continue
            }
            #expect(plan.partition == (isDeceptive ? .identity("ann") : .shared), "\(target) \(type)")
            guard case .store(let plan) = Storability.decide(request: request, response: response, context: StorageContext()) else {
                Issue.record("\(target) \(type) must be stored")
                continue
            }
            #expect(plan.partition == .shared, "without a credential the page is shared")
        }
    }

    /// A POST response with `Content-Location` (RFC 9110 §9.3.3).
    @Test(arguments: [
        Case(response: "Cache-Control: max-age=60 | Content-Location: /v1/notes", expected: .shared),
        Case(response: "Expires: @60 | Content-Location: https://API.example.com:443/v1/notes", expected: .shared),
        Case(response: "Cache-Control: max-age=60 | Content-Location: notes", expected: .shared, context: StorageContext(hasBody: true)),
        Case(response: "Cache-Control: max-age=60 | Content-Location: /v1/notes/7", expected: .refused(.method)),
        Case(response: "Cache-Control: max-age=60 | Content-Location: https://evil.example/v1/notes", expected: .refused(.method)),
        Case(response: "Cache-Control: max-age=60 | Content-Location: /v1/notes | Content-Location: /x", expected: .refused(.method)),
        Case(response: "Cache-Control: max-age=60", expected: .refused(.method)),
        Case(response: "Content-Location: /v1/notes | Last-Modified: @-1000", expected: .refused(.method)),
        Case(response: "Content-Location: /v1/notes", expected: .refused(.method), context: offline),
        Case(response: "Cache-Control: max-age=60 | Content-Location: /v1/notes", expected: .refused(.method), status: 201),
        Case(response: "Cache-Control: max-age=60, no-store | Content-Location: /v1/notes", expected: .refused(.noStore)),
        Case(
            response: "Cache-Control: max-age=60 | Content-Location: /v1/notes", expected: .refused(.requestNoStore),
            request: "Cache-Control: no-store"),
    ])
    func anAnswerToPostThatStandsForItsTarget(_ given: Case) {
        var given = given
        given.method = .post
        check(given)
    }

    @Test func whatPostGivesIsFoundByGet() throws {
        let post = CachingFixture.request(method: .post)
        let response = CachingFixture.response("Cache-Control: max-age=60 | Content-Location: /v1/notes")
        guard case .store(let plan) = Storability.decide(request: post, response: response, context: StorageContext()) else {
            throw Refused()
        }
        #expect(plan.key(for: post) == CacheKey(CachingFixture.request()))
        let byBody = StorageContext(hasBody: true, cachesByBody: true)
        guard case .store(let plan) = Storability.decide(request: post, response: response, context: byBody) else { throw Refused() }
        #expect(plan.key(for: post, body: "b") == CacheKey(post, body: "b"))
    }

    static let ann = StorageContext(identity: "ann")
    static let single = StorageContext(identity: "")
    static let offline = StorageContext(policy: .offlineFirst)
    static let annOffline = StorageContext(identity: "ann", policy: .offlineFirst)

    @Test(arguments: [
        Case(response: "Cache-Control: max-age=60", expected: .own("ann"), context: ann),
        Case(response: "", expected: .own("ann"), context: ann),
        Case(response: "Cache-Control: public, max-age=60", expected: .shared, context: ann),
        Case(response: "Cache-Control: s-maxage=60", expected: .shared, context: ann),
        Case(response: "Cache-Control: must-revalidate, max-age=60", expected: .shared, context: ann),
        Case(response: "Cache-Control: public, private, max-age=60", expected: .own("ann"), context: ann),
        Case(response: "Cache-Control: private", expected: .own("ann"), context: ann),
        Case(response: "Cache-Control: private=\"x-user\", max-age=60", expected: .own("ann"), context: ann),
        Case(response: "Cache-Control: public, max-age=60 | Set-Cookie: a=b", expected: .own("ann"), context: ann),
        Case(response: "Cache-Control: private", expected: .refused(.isPrivate)),
        Case(response: "Cache-Control: private=\"x-user\", max-age=60", expected: .shared),
        Case(response: "Cache-Control: public, max-age=60 | Set-Cookie: a=b", expected: .refused(.setCookie)),
        Case(response: "Cache-Control: max-age=60, no-cache=\"Set-Cookie\" | Set-Cookie: a=b", expected: .shared),
        // With partitions switched off, private responses are still kept apart from shared ones.
        Case(response: "Cache-Control: private, max-age=60", expected: .own("single"), context: single),
        Case(response: "Cache-Control: max-age=60", expected: .own("single"), context: single),
        Case(response: "Cache-Control: public, max-age=60", expected: .shared, context: single),
        // Offline-first stores private responses without an identity, in a separate partition.
        Case(response: "Cache-Control: private", expected: .own("anonymous"), context: offline),
        Case(response: "Set-Cookie: a=b", expected: .own("anonymous"), context: offline),
        Case(response: "Cache-Control: no-cache, private", expected: .own("ann"), context: annOffline),
        // A credential for which no identity was found.
        Case(response: "Cache-Control: max-age=60", expected: .refused(.credentials), request: "Authorization: Bearer x"),
        Case(response: "Cache-Control: max-age=60", expected: .refused(.credentials), request: "Authorization: Bearer x", context: offline),
        Case(
            response: "Cache-Control: private, max-age=60", expected: .refused(.isPrivate), request: "Authorization: Bearer x",
            context: offline),
        Case(response: "Cache-Control: public, max-age=60", expected: .shared, request: "Authorization: Bearer x"),
    ])
    func partition(_ given: Case) { check(given) }

    @Test(arguments: ["", "Cache-Control: no-cache", "Cache-Control: max-age=0, must-revalidate", "Expires: 0", "Pragma: no-cache"])
    func offlineFirstKeepsWhatOnlyOfflineCanUse(_ fields: String) {
        for status in [200, 203, 204, 300, 301, 308, 404, 410] {
            check(Case(response: fields, expected: .shared, status: status, context: Self.offline))
        }
        for status in [201, 403, 500, 503] where fields.isEmpty {
            let decision = Storability.decide(
                request: CachingFixture.request(), response: CachingFixture.response(fields, status: status), context: Self.offline)
            #expect(decision == .refuse(.status) || decision == .refuse(.notCacheable))
        }
        check(Case(response: fields + " | Cache-Control: no-store", expected: .refused(.noStore), context: Self.offline))
    }

    /// A temporary redirect may be that to a login: it is kept for the redirected client. One that sets a cookie is a step of a login itself.
    @Test(arguments: [302, 303, 307]) func temporaryRedirectsAreKeptForTheirRequester(_ status: Int) {
        check(Case(response: "", expected: .own("anonymous"), status: status, context: Self.offline))
        check(Case(response: "", expected: .own("ann"), status: status, context: Self.annOffline))
        check(Case(response: "Cache-Control: max-age=9", expected: .shared, status: status, context: Self.offline))
        check(Case(response: "Set-Cookie: a=b", expected: .refused(.notCacheable), status: status, context: Self.offline))
        check(Case(response: "Cache-Control: no-store", expected: .refused(.noStore), status: status, context: Self.offline))
        check(Case(response: "", expected: .refused(.notCacheable), status: status))
    }

    /// Mercurial names its question in fields that no `Vary` mentions.
    @Test(arguments: ["application/x-git-upload-pack-advertisement", "application/mercurial-0.1", "application/mercurial-0.2"])
    func partsOfARepositoryExchangeAreNotStored(_ type: String) {
        let response = "Content-Type: \(type)"
        check(Case(response: response, expected: .refused(.gitExchange), context: Self.offline))
        check(Case(response: response + " | Cache-Control: max-age=9", expected: .refused(.gitExchange)))
        check(Case(response: response, expected: .shared, context: StorageContext(policy: .offlineFirst, rule: .always)))
    }

    /// What a fetch of git consists of is kept where its route says `cache: body`; what a push begins with never is.
    @Test(arguments: [
        ("application/x-git-upload-pack-advertisement", true), ("application/x-git-upload-pack-result", true),
        ("application/x-git-receive-pack-advertisement", false), ("application/x-git-receive-pack-result", false),
        ("application/mercurial-0.2", false),
    ])
    func aFetchOfGitIsStoredWhereItsRouteSaysSo(_ type: String, isStored: Bool) {
        let response = "Content-Type: \(type) | Cache-Control: no-cache, max-age=0, must-revalidate"
        for cachesByBody in [true, false] {
            let context = StorageContext(policy: .offlineFirst, cachesByBody: cachesByBody, isReadByBody: true)
            check(Case(response: response, expected: isStored ? .shared : .refused(.gitExchange), context: context))
        }
        let isPush = type.contains("receive-pack")
        let always = StorageContext(policy: .offlineFirst, rule: .always)
        check(Case(response: response, expected: isPush ? .refused(.gitExchange) : .shared, context: always))
    }

    /// docs/caching.md#challenges: programs that send their password only when asked are asked while the upstream is away too.
    @Test func aChallengeIsKeptForRequestsWithoutCredentials() {
        let challenge = "WWW-Authenticate: Negotiate, Basic realm=\"a, b\" | Cache-Control: no-cache"
        for request in ["", "X-Odd: 1", "Cache-Control: max-age=0"] {
            check(Case(response: challenge, expected: .own("anonymous"), status: 401, request: request, context: Self.offline))
        }
        check(Case(response: challenge, expected: .refused(.status), status: 401))
        check(Case(response: challenge, expected: .refused(.status), status: 401, context: Self.annOffline))
        check(Case(response: challenge, expected: .refused(.status), status: 401, request: "Authorization: Basic x", context: Self.offline))
        for known in ["Bearer", "Digest nonce=1, qop=\"auth, auth-int\"", "basic"] {
            check(Case(response: "WWW-Authenticate: \(known)", expected: .own("anonymous"), status: 401, context: Self.offline))
        }
        for other in ["", "WWW-Authenticate: NTLM", "WWW-Authenticate: Negotiate, X realm=\"a, Basic b\""] {
            check(Case(response: other, expected: .refused(.status), status: 401, context: Self.offline))
        }
    }

    @Test(arguments: [
        "X-Forwarded-Host", "x-forwarded-scheme", "X-Forwarded-Proto", "X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override",
        "X-HTTP-Method", "X-Method-Override", "X-Host", "Forwarded", "X-Forwarded-Server", "X-Forwarded-Prefix", "X-FORWARDED-PORT",
        "X-Forwarded-Anything", "X-Original-Host", "X-Rewrite-Url", "X-Override-Path", "True-Client-IP", "X-Real-IP",
        "X-HTTP-Host-Override",
    ])
    func overrideFieldsKeepAResponseOut(_ name: String) {
        check(Case(response: "Cache-Control: max-age=60", expected: .refused(.overrideHeader), request: "\(name): x"))
    }

    @Test func lossyBytesKeepAResponseOut() {
        check(Case(response: "Cache-Control: max-age=60 | Vary: X-A", expected: .refused(.undecodableField), request: "X-A: a=\u{FFFD}"))
        check(Case(response: "Cache-Control: max-age=60", expected: .shared, request: "X-Name: Zoë"))
    }

    @Test func storedHeadLeavesOutWhatIsNotKept() throws {
        let response = CachingFixture.response(
            "Set-Cookie: a=b | Connection: X-Hop | X-Hop: 1 | Keep-Alive: 5 | Proxy-Authenticate: x | X-User: ann | X-Kept: 1 | Age: 3"
                + " | Transfer-Encoding: chunked | Cache-Control: max-age=60, no-cache=\"set-cookie\", private=\"X-User\"")
        guard
            case .store(let plan) = Storability.decide(
                request: CachingFixture.request(), response: response, context: StorageContext())
        else { throw Refused() }
        let head = plan.head(of: response, receivedAt: CachingFixture.at(9))
        #expect(head.fields.map(\.name.canonicalName).sorted() == ["age", "cache-control", "date", "x-kept"])
        #expect(head.fields[.date] == CachingFixture.date(9))
    }

    @Test func nothingIsGuessedForCredentials() {
        #expect(StoragePlan(partition: .shared).assignedTTL(named: nil) == nil)
        #expect(StoragePlan(partition: .shared, allowsHeuristic: false).assignedTTL(named: nil) == .zero)
        #expect(StoragePlan(partition: .shared, allowsHeuristic: false).assignedTTL(named: .hours(1)) == .hours(1))
        let decision = Storability.decide(request: CachingFixture.request(), response: CachingFixture.response(), context: Self.ann)
        #expect(decision == .store(StoragePlan(partition: .identity("ann"), stripped: [.setCookie], allowsHeuristic: false)))
    }

    @Test func readablePartitions() {
        #expect(StoragePartition.readable(by: "ann") == [.identity("ann"), .shared])
        #expect(StoragePartition.readable(by: nil) == [.anonymous, .shared])
        #expect(StoragePartition.readable(by: "") == [.single, .shared])
    }

    private struct Refused: Error {}
}
