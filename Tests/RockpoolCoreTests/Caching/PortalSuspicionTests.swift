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
        var suspicion: PortalSuspicion?
        var testDescription: String { "\(stored) \(request) → \(status) \(answer)" }
    }

    private static let page = PortalSuspicion.page(insteadOf: "application/json")

    @Test(arguments: [
        // Changes of the content type.
        Case(answer: "Content-Type: text/html", suspicion: page), Case(answer: "Content-Type: Text/HTML; charset=x", suspicion: page),
        Case(answer: "Content-Type: application/xhtml+xml", suspicion: page),
        Case(stored: ["Content-Type: image/png"], answer: "Content-Type: text/html", suspicion: .page(insteadOf: "image/png")),
        Case(answer: "Content-Type: text/htmlx"), Case(answer: "Content-Type: text/plain"), Case(answer: ""),
        Case(answer: "Content-Type: text/html", status: 404), Case(answer: "Content-Type: text/html", status: 503),
        Case(stored: [], answer: "Content-Type: text/html"), Case(stored: [""], answer: "Content-Type: text/html"),
        Case(stored: ["Content-Type: text/html"], answer: "Content-Type: text/html"),
        Case(storedStatus: 404, answer: "Content-Type: text/html"),
        Case(stored: ["Content-Type: application/json", "Content-Type: text/html"], answer: "Content-Type: text/html"),
        Case(request: "Accept: text/html, */*", answer: "Content-Type: text/html"),
        Case(request: "Accept: application/json", answer: "Content-Type: text/html", suspicion: page),
        Case(request: "Accept: */*", answer: "Content-Type: text/html", suspicion: page),
        Case(stored: ["Content-Type: application/json | Vary: A"], request: "A: 1", answer: "Content-Type: text/html"),
        // Redirects.
        Case(answer: "Location: http://login.hotel.test/?u=x", status: 302, suspicion: .redirect(host: "login.hotel.test")),
        Case(answer: "Location: //login.hotel.test/", status: 307, suspicion: .redirect(host: "login.hotel.test")),
        Case(stored: [], answer: "Location: http://login.hotel.test/", status: 302),
        Case(storedStatus: 301, answer: "Location: http://login.hotel.test/", status: 302),
        Case(answer: "Location: https://api.example.com:8443/", status: 302), Case(answer: "Location: /login", status: 302),
        Case(answer: "Location: http://API.example.com/", status: 301), Case(answer: "Location: notes:open", status: 302),
        Case(answer: "Location: ::", status: 302), Case(answer: "Location: https:///x", status: 302),
        Case(answer: "Location: http://other.test/", status: 201), Case(answer: "Location: http://other.test/", status: 304),
        // A 511 is suspicious without a copy to compare with.
        Case(answer: "", status: 511, suspicion: .login), Case(stored: [], answer: "", status: 511, suspicion: .login),
    ])
    func judge(_ given: Case) {
        let stored = given.stored.map { CachingFixture.stored($0, status: given.storedStatus) }
        let suspicion = PortalSuspicion.judge(
            CachingFixture.response(given.answer, status: given.status), to: CachingFixture.request(given.request), stored: stored)
        #expect(suspicion == given.suspicion)
    }

    /// The type of a copy that an own write has changed since is that of its former content, or the writer's.
    @Test(arguments: ["application/octet-stream", "text/html"])
    func anOwnWriteMayChangeTheType(type: String) {
        var copy = CachingFixture.stored("Content-Type: text/plain")
        let judge = { copy in
            PortalSuspicion.judge(
                CachingFixture.response("Content-Type: " + type), to: CachingFixture.request(), stored: [copy], isDeclared: true)
        }
        let (isPage, page) = (type == "text/html", PortalSuspicion.page(insteadOf: "text/plain"))
        #expect(judge(copy) == (isPage ? page : .content(type, insteadOf: "text/plain")))
        copy.ownWrite = OwnWriteMark(at: CachingFixture.start, isIncluded: true)
        #expect(judge(copy) == (isPage ? page : nil))
    }

    @Test func httpsUpgradeIsNone() {
        var request = CachingFixture.request()
        request.origin = OriginAddress(scheme: .http, host: "api.example.com")
        let upgrade = CachingFixture.response("Location: https://api.example.com/v1/notes", status: 301)
        #expect(PortalSuspicion.judge(upgrade, to: request, stored: [CachingFixture.stored()]) == nil)
    }

    @Test func detailsSayWhatWasSeen() {
        #expect(PortalSuspicion.login.detail == "511: the network asks for a login")
        #expect(PortalSuspicion.redirect(host: "h").detail == "redirected to h")
        #expect(PortalSuspicion.page(insteadOf: "image/png").detail == "a page came in place of image/png")
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

    @Test(arguments: [(302, false), (404, false), (410, false), (204, true), (203, true)])
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
