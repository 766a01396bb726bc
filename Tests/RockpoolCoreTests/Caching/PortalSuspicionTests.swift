// Signs of a captive portal in a response, and copies that an error response may not replace.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct PortalSuspicionTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var stored: [String] = ["Content-Type: application/json"]
        var storedStatus = 200
        var request = ""
        var answer: String
        var status = 200
        var hasBody = true
        var suspicion: PortalSuspicion?
        var testDescription: String { "\(stored) \(request) → \(status) \(answer)\(hasBody ? "" : " without body")" }
    }

    private static let page = PortalSuspicion(.page(insteadOf: "application/json"), basis: .copy)
    private static let login = PortalSuspicion(.login, basis: .status)
    private static let elsewhere = PortalSuspicion(.redirect(host: "login.hotel.test"), basis: .copy)
    private static func asked(_ accept: String) -> PortalSuspicion { PortalSuspicion(.page(insteadOf: accept), basis: .accept) }

    @Test(arguments: [
        // A page in place of what is not a page.
        Case(answer: "Content-Type: text/html", suspicion: page), Case(answer: "Content-Type: Text/HTML; charset=x", suspicion: page),
        Case(answer: "Content-Type: application/xhtml+xml", suspicion: page),
        Case(
            stored: ["Content-Type: image/png"], answer: "Content-Type: text/html",
            suspicion: PortalSuspicion(.page(insteadOf: "image/png"), basis: .copy)),
        Case(answer: "Content-Type: text/htmlx"), Case(answer: "Content-Type: text/plain"), Case(answer: ""),
        Case(answer: "Content-Type: text/html", status: 404), Case(answer: "Content-Type: text/html", status: 503),
        Case(stored: [], answer: "Content-Type: text/html"), Case(stored: [""], answer: "Content-Type: text/html"),
        Case(storedStatus: 404, answer: "Content-Type: text/html"),
        Case(request: "Accept: application/json", answer: "Content-Type: text/html", suspicion: page),
        Case(request: "Accept: */*", answer: "Content-Type: text/html", suspicion: page),
        Case(stored: ["Content-Type: application/json | Vary: A"], request: "A: 1", answer: "Content-Type: text/html"),
        // The client asks for pages: the copy is kept, and the client gets the page.
        Case(
            request: "Accept: text/html, */*", answer: "Content-Type: text/html",
            suspicion: PortalSuspicion(.page(insteadOf: "application/json"), basis: .copyOfOtherClients)),
        // Nothing in place of a page, nor where a page belongs too.
        Case(stored: ["Content-Type: text/html"], answer: "Content-Type: text/html"),
        Case(stored: ["Content-Type: text/html"], answer: "Content-Type: application/json"),
        Case(stored: ["Content-Type: text/html"], answer: "Location: http://login.hotel.test/", status: 302),
        Case(stored: ["Content-Type: application/json", "Content-Type: text/html"], answer: "Content-Type: text/html"),
        // Where nothing is stored, the request says what it expects.
        Case(stored: [], request: "Accept: application/json", answer: "Content-Type: text/html", suspicion: asked("application/json")),
        Case(stored: [], request: "Accept: image/avif,image/*", answer: "Content-Type: text/html", suspicion: asked("image/avif,image/*")),
        Case(stored: [], request: "Accept: application/json, */*;q=0.1", answer: "Content-Type: text/html"),
        Case(stored: [], request: "Accept: text/*", answer: "Content-Type: text/html"),
        Case(stored: [], request: "Accept: text/html", answer: "Content-Type: text/html"),
        Case(stored: ["Content-Type: text/html"], request: "Accept: application/json", answer: "Content-Type: text/html"),
        // An answer without a body is no page.
        Case(answer: "Content-Type: text/html", hasBody: false), Case(answer: "Content-Type: text/html", status: 204),
        Case(answer: "Content-Type: text/html", status: 205), Case(answer: "Content-Type: text/html", status: 201, hasBody: false),
        Case(stored: [], request: "Accept: application/json", answer: "Content-Type: text/html", hasBody: false),
        Case(answer: "Content-Type: text/html", status: 304),
        // Redirects.
        Case(answer: "Location: http://login.hotel.test/?u=x", status: 302, suspicion: elsewhere),
        Case(answer: "Location: //login.hotel.test/", status: 307, suspicion: elsewhere),
        Case(stored: [], answer: "Location: http://login.hotel.test/", status: 302),
        Case(storedStatus: 301, answer: "Location: http://login.hotel.test/", status: 302),
        Case(answer: "Location: https://api.example.com:8443/", status: 302), Case(answer: "Location: /login", status: 302),
        Case(answer: "Location: http://API.example.com/", status: 301), Case(answer: "Location: notes:open", status: 302),
        Case(answer: "Location: ::", status: 302), Case(answer: "Location: https:///x", status: 302),
        Case(answer: "Location: http://other.test/", status: 201), Case(answer: "Location: http://other.test/", status: 304),
        // A 511 is suspicious without a copy to compare with.
        Case(answer: "", status: 511, suspicion: login), Case(stored: [], answer: "", status: 511, suspicion: login),
    ])
    func judge(_ given: Case) {
        let stored = given.stored.map { CachingFixture.stored($0, status: given.storedStatus) }
        let suspicion = PortalSuspicion.judge(
            CachingFixture.response(given.answer, status: given.status), to: CachingFixture.request(given.request), stored: stored,
            hasBody: given.hasBody)
        #expect(suspicion == given.suspicion)
    }

    private static let data = [
        "application/json", "application/problem+json", "application/javascript", "text/javascript", "application/xml",
        "application/rss+xml",
        "application/atom+xml", "text/xml", "text/css", "text/csv", "text/plain", "application/octet-stream", "application/zip",
        "application/gzip", "application/pdf", "image/png", "image/svg+xml", "font/woff2", "application/wasm", "application/x-ndjson",
        "application/vnd.oci.image.index.v1+json", "text/calendar", "application/x-tar; charset=binary", "inconnu/données",
    ]

    /// No type that is not a page contradicts another one, or a page.
    @Test(arguments: data, ["", "Accept: */*", "Accept: application/json", "Accept: text/html", "Accept-Language: de | Accept: text/csv"])
    func anyDataIsBelieved(type: String, request: String) {
        for stored in Self.data + ["text/html"] {
            for others in [[], ["Content-Type: image/png"], ["Content-Type: text/html"]] {
                let copies = (["Content-Type: \(stored)"] + others).map { CachingFixture.stored($0) }
                let answer = CachingFixture.response("Content-Type: \(type)")
                #expect(PortalSuspicion.judge(answer, to: CachingFixture.request(request), stored: copies) == nil, "\(stored)")
            }
        }
    }

    @Test func httpsUpgradeIsNone() {
        var request = CachingFixture.request()
        request.origin = OriginAddress(scheme: .http, host: "api.example.com")
        let upgrade = CachingFixture.response("Location: https://api.example.com/v1/notes", status: 301)
        let stored = CachingFixture.stored("Content-Type: application/json")
        #expect(PortalSuspicion.judge(upgrade, to: request, stored: [stored]) == nil)
    }

    @Test func detailsSayWhatWasSeen() {
        #expect(Self.login.detail == "511: the network asks for a login")
        #expect(Self.elsewhere.detail == "redirected to login.hotel.test")
        #expect(Self.page.detail == "a page came in place of application/json")
        #expect([Self.login, Self.elsewhere, Self.page].allSatisfy { $0.concernsReply } && !Self.asked("a/b").concernsReply)
    }

    @Test(arguments: [
        (200, "application/json", true, true), (200, "text/html", true, false), (200, "text/html", false, true),
        (204, "text/html", true, true), (304, "text/html", false, true), (404, "application/json", true, false),
        (302, "", false, false), (511, "", false, false),
    ])
    func anAnswerThatIsNoPageShowsTheUpstream(status: Int, type: String, hasBody: Bool, shows: Bool) {
        let answer = CachingFixture.response(type.isEmpty ? "" : "Content-Type: \(type)", status: status)
        #expect(PortalSuspicion.showsUpstream(answer, hasBody: hasBody) == shows)
    }
}

/// Signs in the answers to writes.
@Suite struct WritePortalTests {
    private static let json = "Content-Type: application/json"
    private static let page = "<!doctype html><title>Log in"

    private func sign(_ request: String, _ status: Int, _ answer: String, body: String? = page) -> PortalSuspicion.Sign? {
        PortalSuspicion.judge(
            CachingFixture.response(answer, status: status), toWrite: CachingFixture.request(request, method: .post),
            bodyStart: body.map { Array($0.utf8) })?.sign
    }

    @Test(arguments: [
        (json, "application/json"), ("Accept: application/json", "application/json"), ("Accept: */* | " + json, "application/json"),
        ("Accept: application/xml | Content-Type: application/xml", "application/xml"), ("Accept: text/csv", "text/csv"),
        ("Accept: application/json, text/plain, */*", "application/json, text/plain, */*"),
    ])
    func aPageIsASignWhereItsClientExpectsNone(request: String, insteadOf: String) {
        for status in [200, 201, 202, 203] {
            #expect(sign(request, status, "Content-Type: text/html; charset=utf-8") == .page(insteadOf: insteadOf))
        }
        #expect(sign(request, 400, "Content-Type: text/html") == nil && sign(request, 500, "Content-Type: text/html") == nil)
    }

    @Test(arguments: [
        "", "Accept: */*", "Accept: text/html | " + json, "Content-Type: application/x-www-form-urlencoded", "Content-Type: text/plain",
    ])
    func otherClientsMayExpectAPage(request: String) { #expect(sign(request, 200, "Content-Type: text/html") == nil) }

    @Test(arguments: [
        ("", false), ("ok", false), ("Gespeichert ✓", false), (#"{"id":1}"#, false), ("  \r\n", false), (page, true),
        ("\n  <p>Merci", true), ("\u{FEFF}<html>", true),
    ])
    func aBodyThatDoesNotBeginLikeAPageIsNone(body: String, isPage: Bool) {
        #expect((sign(Self.json, 201, "Content-Type: text/html", body: body) != nil) == isPage)
    }

    @Test func withoutTheBodyItsTypeDecides() {
        #expect(sign(Self.json, 200, "Content-Type: text/html", body: nil) == .page(insteadOf: "application/json"))
        #expect(sign(Self.json, 204, "Content-Type: text/html", body: nil) == nil)
        #expect(sign(Self.json, 205, "Content-Type: text/html", body: nil) == nil)
    }

    @Test func otherSignsNeedNoBody() {
        #expect(sign("", 511, "", body: "") == .login)
        #expect(sign("", 302, "Location: http://login.hotel.test/", body: "") == .redirect(host: "login.hotel.test"))
        #expect(sign("", 303, "Location: /v1/notes/7", body: "") == nil)
    }
}

@Suite struct ReplacementTests {
    @Test(arguments: [
        (200, "", [200], true), (203, "", [200], true), (302, "Cache-Control: max-age=9", [200], true),
        (204, "", [200], false), (204, "Cache-Control: max-age=9", [200], true), (204, "", [204], true), (301, "", [200], false),
        (308, "", [200], false), (308, "Cache-Control: max-age=9", [200], true),
        (404, "Cache-Control: max-age=60", [200], true), (410, "Expires: @60", [200], true),
        (404, "Cache-Control: s-maxage=1", [206], true),
        (404, "", [200], false), (410, "Last-Modified: @-9999", [200], false), (404, "Cache-Control: max-age=0", [200], false),
        (404, "Cache-Control: no-cache, max-age=60", [200], false), (404, "Expires: @-1", [200], false),
        (404, "Cache-Control: max-age=60 | Age: 60", [200], false),
        (500, "Cache-Control: max-age=60", [200], false), (503, "Cache-Control: max-age=60", [404, 203], false),
        (401, "Cache-Control: max-age=60", [200], false), (403, "Cache-Control: max-age=60", [200], false),
        (429, "Cache-Control: max-age=60", [200], false), (400, "Cache-Control: max-age=60", [200], false),
        (500, "", [], true), (503, "Cache-Control: max-age=60", [404], true), (404, "", [301, 500], true),
    ])
    func decide(_ status: Int, fields: String, stored: [Int], isAllowed: Bool) {
        let decision = Replacement.decide(
            CachingFixture.response(fields, status: status), stored: stored.map { CachingFixture.stored(status: $0) },
            receivedAt: CachingFixture.start)
        #expect((decision == .allowed) == isAllowed)
        if case .refused(let detail) = decision { #expect(detail.contains("\(status)")) }
    }

    @Test func anEmpty200IsBelievedWhenItWasSeenTwice() {
        let response = CachingFixture.response()
        var copy = CachingFixture.stored(bodyLength: 5)
        for (isEmpty, isConfirmed, isAllowed) in [(true, false, false), (true, true, true), (false, false, true)] {
            let decision = Replacement.decide(
                response, isEmpty: isEmpty, stored: [copy], receivedAt: CachingFixture.start, isConfirmed: isConfirmed)
            #expect((decision == .allowed) == isAllowed, "\(isEmpty) \(isConfirmed)")
            #expect(Replacement.needsConfirmation(response, isEmpty: isEmpty, stored: [copy]) == isEmpty)
        }
        // What a write has made out of date, or was empty before, is no good copy.
        copy.isInvalidated = true
        #expect(!Replacement.needsConfirmation(response, isEmpty: true, stored: [copy]))
        (copy.isInvalidated, copy.bodyLength) = (false, 0)
        #expect(!Replacement.needsConfirmation(response, isEmpty: true, stored: [copy]))
    }

    @Test(arguments: [(302, false), (404, false), (410, false), (204, false), (203, true)])
    func whatWasSeenOnceReplacesNothing(_ status: Int, isAllowed: Bool) {
        let decision = Replacement.decide(
            CachingFixture.response("Cache-Control: max-age=60", status: status), stored: [CachingFixture.stored()],
            receivedAt: CachingFixture.start, isConfirmed: false)
        #expect((decision == .allowed) == isAllowed)
    }

    /// The error also hides stored variants that the request does not select, so they count too.
    @Test func anyVariantCounts() {
        let stored = CachingFixture.stored("Vary: A", for: "A: 1")
        #expect(Replacement.decide(CachingFixture.response(status: 500), stored: [stored], receivedAt: CachingFixture.start) != .allowed)
    }
}
