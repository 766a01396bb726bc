// RFC 9211 and RFC 9209: the appended list members with safe quoting; also cache keys and guessed categories.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct StatusFieldTests {
    @Test(arguments: [
        (CacheStatus(hit: true, ttl: 57), "rockpool; hit; ttl=57"),
        (CacheStatus(hit: true, ttl: -340, detail: "offline"), "rockpool; hit; ttl=-340; detail=offline"),
        (CacheStatus(hit: false, fwd: .uriMiss, stored: true), "rockpool; fwd=uri-miss; stored"),
        (CacheStatus(hit: false, fwd: .stale, fwdStatus: 304), "rockpool; fwd=stale; fwd-status=304"),
        (CacheStatus(hit: false, fwd: .varyMiss, collapsed: true), "rockpool; fwd=vary-miss; collapsed"),
        (CacheStatus(cache: "other", hit: false, fwd: .bypass, detail: "a b\"c\\\r\né"), "other; fwd=bypass; detail=\"a b\\\"c\\\\????\""),
        (CacheStatus(hit: true, detail: ""), "rockpool; hit; detail=\"\""),
    ])
    func cacheStatus(_ status: CacheStatus, text: String) {
        #expect(status.fieldValue == text)
    }

    @Test func proxyStatus() {
        #expect(
            ProxyStatus(error: .connectionRefused, nextHop: "api.example.com:443").fieldValue
                == "rockpool; error=connection_refused; next-hop=\"api.example.com:443\"")
        #expect(ProxyStatus(error: .dnsError).fieldValue == "rockpool; error=dns_error")
    }

    @Test(arguments: [
        (ProxyError.dnsTimeout, 504), (.dnsError, 502), (.destinationNotFound, 500), (.destinationUnavailable, 503),
        (.destinationIPProhibited, 502), (.connectionRefused, 502), (.connectionTimeout, 504), (.connectionLimitReached, 503),
        (.tlsCertificateError, 502), (.httpRequestDenied, 403), (.httpResponseTimeout, 504), (.httpProtocolError, 502),
        (.proxyInternalError, 500), (.proxyConfigurationError, 500), (.proxyLoopDetected, 502),
    ])
    func recommendedStatus(_ error: ProxyError, status: Int) {
        #expect(error.recommendedStatus == status)
    }

    @Test func errorNamesAreTokens() {
        #expect(ProxyError.allCases.allSatisfy { $0.rawValue.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x5F } })
        #expect(ProxyError.allCases.count == 32)
    }
}

@Suite struct CacheKeyTests {
    @Test func partsCanBeReadBack() {
        let key = CacheKey(CachingFixture.request(target: "/a?b=%2f&B=/"), identity: "ann", body: "5f")
        #expect(key.text == "GET\nhttps://api.example.com\n/a?b=%2f&B=/\nann\n5f")
        #expect(key.url == "https://api.example.com/a?b=%2f&B=/" && key.identity == "ann" && key.method == "GET")
        #expect(CacheKey(text: key.text) == key && CacheKey(text: "GET") == nil)
    }

    @Test func headSharesTheKeyOfGetAndNothingElseIsShared() {
        let origin = CachingFixture.origin
        let get = CacheKey(method: "GET", origin: origin, target: "/a", identity: "")
        #expect(CacheKey(method: "HEAD", origin: origin, target: "/a", identity: "") == get)
        #expect(get.identity.isEmpty)
        let others = [
            CacheKey(method: "POST", origin: origin, target: "/a"), CacheKey(method: "GET", origin: origin, target: "/a/"),
            CacheKey(method: "GET", origin: origin, target: "/A"), CacheKey(method: "GET", origin: origin, target: "/a?"),
            CacheKey(method: "GET", origin: origin, target: "/a", identity: "x"),
            CacheKey(method: "GET", origin: origin, target: "/a", body: "x"),
            CacheKey(method: "GET", origin: origin, target: "/a\nx"),
            CacheKey(method: "GET", origin: origin, target: "/a", identity: "\nx"),
            CacheKey(method: "GET", origin: OriginAddress(scheme: .http, host: "api.example.com"), target: "/a"),
            CacheKey(method: "GET", origin: OriginAddress(scheme: .https, host: "api.example.com", port: 8443), target: "/a"),
        ]
        #expect(Set(others + [get]).count == others.count + 1)
    }
}

@Suite struct CategoryGuessTests {
    @Test(arguments: [
        ("application/json", "important"), ("application/json; charset=utf-8", "important"), ("application/problem+json", "important"),
        ("text/html", "important"), ("TEXT/HTML;charset=x", "important"), ("application/xml", "important"), ("image/png", "assets"),
        ("image/svg+xml", "assets"), ("font/woff2", "assets"), ("text/css", "assets"), ("text/javascript", "assets"),
        ("application/wasm", "assets"), ("video/mp4", "assets"), ("application/octet-stream", "assets"), ("text/event-stream", "ephemeral"),
        ("application/x-ndjson", "ephemeral"), ("", "ephemeral"), ("json", "ephemeral"), ("multipart/mixed", "ephemeral"),
    ])
    func byContentType(_ type: String, category: String) {
        #expect(CategoryGuess.name(for: CachingFixture.response("Content-Type: \(type)")) == category)
    }

    @Test func nothingToGuessFrom() {
        #expect(CategoryGuess.name(for: CachingFixture.response()) == "ephemeral")
        #expect(CategoryGuess.name(for: CachingFixture.response("Content-Type: a/b | Content-Type: image/png")) == "ephemeral")
    }
}
