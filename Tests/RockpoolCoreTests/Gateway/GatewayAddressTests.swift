// Clients of a gateway meet the gateway's address in place of the origin's.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct GatewayAddressTests {
    private let gateway: GatewayAddress

    init() throws {
        gateway = try #require(
            GatewayAddress(origin: OriginAddress(scheme: .https, host: "api.test"), base: "http://localhost:7630"))
    }

    private func field(_ name: HTTPField.Name, _ value: String) -> String? { gateway.translated([name: value])[name] }

    @Test(arguments: [
        ("https://api.test/v1/notes?x=1#a", "http://localhost:7630/v1/notes?x=1#a"), ("HTTPS://API.test:443", "http://localhost:7630"),
        ("//api.test/a", "//localhost:7630/a"), ("http://api.test/a", "http://localhost:7630/a"),
    ])
    func aUrlOfTheOriginIsTranslated(_ url: String, _ expected: String) {
        #expect(gateway.translated(url) == expected)
        #expect(field(.location, url) == expected && field(.contentLocation, url) == expected)
    }

    @Test(arguments: [
        "/v1/notes", "a", "?x", "", "https://api.test:8443/", "http://api.test:8080/", "https://other.test/?u=https://api.test/",
        "https://api.test.evil.test/", "https://user@api.test/", "ftp://api.test/", "mailto:a@api.test", "a//api.test/",
    ])
    func anyOtherReferenceStays(_ reference: String) {
        #expect(gateway.translated(reference) == nil && field(.location, reference) == reference)
    }

    @Test(arguments: ["Next-Page", "X-Next-Page-URL", "SourceMap"])
    func whatIsAUrlOfTheOriginIsTranslatedInEveryField(_ name: String) throws {
        let name = try #require(HTTPField.Name(name))
        #expect(field(name, "https://api.test/n?p=2") == "http://localhost:7630/n?p=2")
        #expect(GatewayAddress.mayConcern([name: "https://api.test/n?p=2"]) && !GatewayAddress.mayConcern([name: "hello"]))
        for other in ["https://other.test/n", "https://api.test/a, https://api.test/b", "see https://api.test/", "/n?p=2", "http"] {
            #expect(field(name, other) == other)
        }
    }

    @Test func linksAndRefreshAreTranslated() {
        let link = HTTPField.Name("Link") ?? .location
        let value = #"<https://api.test/n?p=2>; rel="next", <https://cdn.test/a>; rel=preload, </x>; rel=self"#
        #expect(field(link, value) == value.replacing("https://api.test/n", with: "http://localhost:7630/n"))
        let refresh = HTTPField.Name("Refresh") ?? .location
        #expect(field(refresh, "5; URL='https://api.test/a'") == "5; URL='http://localhost:7630/a'")
        #expect(field(refresh, "0;url=https://api.test/a") == "0;url=http://localhost:7630/a")
        for other in ["5", "5; url=/a"] { #expect(field(refresh, other) == other) }
    }

    @Test func cookiesBelongToTheGateway() {
        #expect(
            field(.setCookie, "a=b; Domain=.api.test; Path=/x; Secure; HttpOnly; SameSite=None; Partitioned") == "a=b; Path=/x; HttpOnly")
        #expect(field(.setCookie, "a=Secure; domain=test; SameSite=Lax") == "a=Secure; SameSite=Lax")
        #expect(field(.setCookie, "a=b; Domain=other.test; Max-Age=5") == "a=b; Domain=other.test; Max-Age=5")
        #expect(field(.setCookie, "__Host-a=b; Secure; Path=/") == "__Host-a=b; Secure; Path=/")
    }

    @Test func severalCookiesStaySeparateAndOtherWaysAreRemoved() throws {
        var fields: HTTPFields = [.strictTransportSecurity: "max-age=1", try #require(.init("Alt-Svc")): "h3", .eTag: "\"a\""]
        for value in ["a=1; Secure", "b=2; Secure"] { fields.append(HTTPField(name: .setCookie, value: value)) }
        let translated = gateway.translated(fields)
        #expect(translated[values: .setCookie] == ["a=1", "b=2"] && translated[.eTag] == "\"a\"")
        #expect(translated[.strictTransportSecurity] == nil && translated.count == 3)
    }

    @Test func aPrefixIsPartOfEveryPath() throws {
        let origin = OriginAddress(scheme: .https, host: "api.test")
        let gateway = try #require(GatewayAddress(origin: origin, base: "http://localhost:7630", prefix: "/notes"))
        for (reference, expected) in [
            ("/v1", "/notes/v1"), ("https://api.test/v1", "http://localhost:7630/notes/v1"), ("//api.test/a", "//localhost:7630/notes/a"),
            ("https://api.test", "http://localhost:7630/notes"),
        ] { #expect(gateway.translated(reference) == expected) }
        for reference in ["v1", "?x", "https://other.test/", "//other.test/"] { #expect(gateway.translated(reference) == nil) }
        let cookies = gateway.translated([.setCookie: "a=b; path=/; HttpOnly"])[.setCookie]
        #expect(cookies == "a=b; Path=/notes/; HttpOnly")
        #expect(gateway.translated([.setCookie: "__Host-a=b; Path=/; Secure"])[.setCookie] == "__Host-a=b; Path=/; Secure")
        #expect(gateway.translated([.accessControlAllowOrigin: origin.url])[.accessControlAllowOrigin] == "http://localhost:7630")
    }

    @Test(arguments: ["", "/notes"]) func aPathOfTheOriginIsNoPartOfThePathsAtTheGateway(prefix: String) throws {
        let origin = OriginAddress(scheme: .https, host: "api.test")
        let gateway = try #require(
            GatewayAddress(origin: origin, base: "http://localhost:7630", prefix: prefix, basePath: "/api/v2"))
        let base = "http://localhost:7630" + prefix
        for (reference, expected) in [
            ("/api/v2/notes/1", prefix + "/notes/1"), ("/api/v2", prefix + "/"), ("/api/v2?x", prefix + "/?x"),
            ("https://api.test/api/v2/notes", base + "/notes"), ("//api.test/api/v2/a", "//localhost:7630\(prefix)/a"),
            // Outside of it: the origin itself, which no path of the gateway leads to.
            ("/login", "https://api.test/login"), ("/api/v20", "https://api.test/api/v20"),
        ] { #expect(gateway.translated(reference) == expected, "\(reference)") }
        for reference in ["v1", "https://api.test/login", "https://api.test/api/v20", "https://api.test"] {
            #expect(gateway.translated(reference) == nil, "\(reference)")
        }
        // Rockpool's own documents are at the gateway.
        let own = "/.well-known/rockpool/operations/1"
        #expect(gateway.translated(own) ?? own == prefix + own)
        for (path, expected) in [("/", "/"), ("/api", "/"), ("/api/v2", "/"), ("/api/v2/x", "/x"), ("/other", "/other")] {
            #expect(gateway.translated([.setCookie: "a=b; Path=\(path)"])[.setCookie] == "a=b; Path=\(prefix)\(expected)")
        }
        let json = Array(#"{"url":"https://api.test/api/v2/1","other":"https://api.test/x"}"#.utf8)
        let ours = Array(#"{"url":"\#(base)/1","other":"https://api.test/x"}"#.utf8)
        #expect(gateway.outward(json: json) == ours && gateway.inward(json: ours) == json)
    }

    @Test func theOriginsOwnNameNeedsNoTranslation() {
        #expect(GatewayAddress(origin: OriginAddress(scheme: .http, host: "api.test"), base: "http://api.test") == nil)
    }

    @Test(arguments: [
        (
            #"{"url":"https://api.test/v1/1","n":[ "https://api.test" ]}"#,
            #"{"url":"http://localhost:7630/v1/1","n":[ "http://localhost:7630" ]}"#
        ),
        (#"{"url":"https:\/\/api.test\/v1"}"#, #"{"url":"http:\/\/localhost:7630\/v1"}"#),
    ])
    func urlsInJSONAreTranslatedBothWays(_ theirs: String, _ ours: String) {
        #expect(gateway.outward(json: Array(theirs.utf8)) == Array(ours.utf8))
        #expect(gateway.inward(json: Array(ours.utf8)) == Array(theirs.utf8))
    }

    @Test(arguments: [
        #"{"url":"https://api.test.evil.test/"}"#, #"{"url":"https://api.test:8443/"}"#, #"{"text":"see https://api.test/"}"#, "{}", "",
        #""https://api.test"#,
    ])
    func allOtherJSONStays(_ text: String) {
        #expect(gateway.outward(json: Array(text.utf8)) == nil)
    }
}
