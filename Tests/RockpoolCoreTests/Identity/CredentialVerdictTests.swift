// Which answers prove a credential, and how sessions leave old cookies behind (docs/security-model.md#proof, docs/caching.md#renewed-cookies).
import HTTPTypes
import Testing

@testable import RockpoolCore

struct CredentialVerdictTests {
    private static let origin = OriginAddress(scheme: .https, host: "a.test")

    private static func request(
        _ fields: HTTPFields = [.authorization: "Bearer t"], _ method: HTTPRequest.Method = .get, _ target: String = "/me"
    ) -> RequestHead { RequestHead(method: method, origin: origin, target: target, fields: fields) }

    private static func verdict(
        _ answer: ResponseHead, to request: RequestHead = request(), hasBody: Bool = false, named: HTTPField.Name? = nil,
        after earlier: [(RequestHead, ResponseHead)] = []
    ) -> CredentialVerdict {
        var places = PlaceAccess()
        for (asked, said) in earlier { places.note(said, to: asked, asking: AskingFields(asked, named: named)) }
        return CredentialVerdict(answer, to: request, asking: AskingFields(request, named: named), hasBody: hasBody, places: places)
    }

    private static func ok(_ fields: HTTPFields, _ status: Int = 200) -> ResponseHead { ResponseHead(status: status, fields: fields) }

    private static let personal: HTTPFields = [.cacheControl: "private"]
    private static let html: HTTPFields = [.contentType: "text/html", .cacheControl: "private"]
    private static let refused = ResponseHead(status: 401)

    // MARK: what an answer says of itself

    static let answers: [(HTTPFields, CredentialVerdict)] = [
        ([.cacheControl: "private"], .proved(.isPersonal)), ([.cacheControl: "no-store"], .proved(.isPersonal)),
        ([.cacheControl: "max-age=0, private, must-revalidate"], .proved(.isPersonal)),
        ([.vary: "Accept, Authorization"], .proved(.isPersonal)),
        ([.cacheControl: "no-cache, no-store, must-revalidate"], .proved(.isPersonal)), ([.vary: "authorization"], .proved(.isPersonal)),
        ([:], .accepted(.unmarked)), ([.cacheControl: "max-age=600"], .accepted(.unmarked)), ([.vary: "Accept"], .accepted(.unmarked)),
        ([.vary: "Cookie"], .accepted(.unmarked)), ([.cacheControl: "no-cache"], .accepted(.unmarked)),
        ([.cacheControl: #"private="X-User""#], .accepted(.unmarked)), ([.vary: "*"], .accepted(.unmarked)),
        ([.cacheControl: "public, max-age=9"], .accepted(.shareable)), ([.cacheControl: "s-maxage=9"], .accepted(.shareable)),
        ([.cacheControl: "public", .vary: "Authorization"], .accepted(.shareable)),
        ([.cacheControl: "must-revalidate"], .accepted(.shareable)),
    ]

    @Test(arguments: answers) func onlyAnAnswerForItsRequesterProves(fields: HTTPFields, verdict: CredentialVerdict) {
        #expect(Self.verdict(Self.ok(fields)) == verdict)
    }

    @Test(arguments: [200, 203, 206]) func successProves(status: Int) {
        #expect(Self.verdict(Self.ok(Self.personal, status)) == .proved(.isPersonal))
    }

    @Test(arguments: [301, 302, 303, 400, 401, 403, 404, 409, 429, 500, 503, 511]) func failureSaysNothing(status: Int) {
        #expect(Self.verdict(Self.ok(Self.personal, status)) == .nothing)
    }

    @Test func notModifiedIsNoAnswerOfItsOwn() { #expect(Self.verdict(Self.ok(Self.personal, 304)) == .accepted(.method)) }

    /// A login is carried out whatever credential comes with it, and anyone may ask for the methods of a place.
    @Test(arguments: ["OPTIONS", "HEAD", "POST", "PUT", "PATCH", "DELETE", "MKCOL", "QUERY", "SEARCH"]) func onlyReadsProve(
        method: String
    ) throws {
        let request = Self.request([.authorization: "Bearer t"], try #require(HTTPRequest.Method(method)))
        #expect(Self.verdict(Self.ok(Self.personal), to: request) == .accepted(.method))
        #expect(Self.verdict(Self.ok([:]), to: request, after: [(Self.request([:], request.method), Self.refused)]) == .accepted(.method))
    }

    @Test(arguments: ["PROPFIND", "REPORT"]) func readsOfCollectionsProve(method: String) throws {
        let request = Self.request([.authorization: "Basic YTpi"], try #require(HTTPRequest.Method(method)))
        #expect(Self.verdict(Self.ok(Self.personal, 207), to: request, hasBody: true) == .proved(.isPersonal))
    }

    @Test func aBodyMaySayWhoAsks() { #expect(Self.verdict(Self.ok(Self.personal), hasBody: true) == .accepted(.body)) }

    @Test func aPageThatWasNotAskedForMayBeAPortals() {
        #expect(Self.verdict(Self.ok(Self.html)) == .nothing)
        #expect(Self.verdict(Self.ok(Self.html), to: Self.request([.authorization: "t", .accept: "*/*"])) == .nothing)
        #expect(Self.verdict(Self.ok(Self.html), to: Self.request([.authorization: "t", .accept: "text/html"])) == .proved(.isPersonal))
    }

    // MARK: other credentials in the request

    static let besides: [(HTTPFields, String, Bool)] = [
        ([.cookie: "session=0123456789abcdef"], "/me", false), ([.cookie: "lang=de; theme=dark"], "/me", true),
        ([.cookie: "csrftoken=0123456789abcdef0123"], "/me", true), ([.cookie: "_ga=GA1.2.0123456789abcdef"], "/me", true),
        ([.cookie: "lang=de; s=0123456789abcdef"], "/me", false), ([HTTPField.Name("X-Api-Key") ?? .accept: "k"], "/me", false),
        ([:], "/me?access_token=t", false), ([:], "/me?page=2&Token=t", false), ([:], "/me?page=2", true), ([:], "/me?tokens=2", true),
    ]

    /// The attacker's own session or key is what the answer is due to.
    @Test(arguments: besides) func anAnswerIsDueToOneCredential(others: HTTPFields, target: String, isAlone: Bool) {
        let request = Self.request([.authorization: "Bearer t"] + others, .get, target)
        #expect(Self.verdict(Self.ok(Self.personal), to: request) == (isAlone ? .proved(.isPersonal) : .accepted(.another)))
        // Unless the same request was refused with nothing but this changed.
        let without = Self.request(others, .get, target)
        #expect(Self.verdict(Self.ok([:]), to: request, after: [(without, Self.refused)]) == .proved(.refusesOthers))
    }

    // MARK: what the place has said to others

    @Test(arguments: [401, 403]) func aPlaceThatRefusesOthersProves(status: Int) {
        let refused = ResponseHead(status: status)
        for other in [[:], [.authorization: "Bearer old"]] as [HTTPFields] {
            #expect(Self.verdict(Self.ok([:]), after: [(Self.request(other), refused)]) == .proved(.refusesOthers), "\(other)")
        }
        #expect(Self.verdict(Self.ok([:]), after: [(Self.request(), refused)]) == .accepted(.unmarked), "it is the same credential")
        #expect(Self.verdict(Self.ok([.cacheControl: "public"]), after: [(Self.request([:]), refused)]) == .accepted(.shareable))
    }

    /// A refusal for another reason than the credential: by another URL, method or field, or by a limit on the rate.
    @Test func onlyTheSameRequestCompares() {
        let (mine, none) = (Self.ok([:]), CredentialVerdict.accepted(.unmarked))
        #expect(Self.verdict(mine, after: [(Self.request([:], .get, "/other"), Self.refused)]) == none)
        #expect(Self.verdict(mine, after: [(Self.request([:], .get, "/me?x=1"), Self.refused)]) == none)
        #expect(Self.verdict(mine, after: [(Self.request([:], .post), Self.refused)]) == none)
        #expect(Self.verdict(mine, after: [(Self.request([.origin: "http://evil.test"]), Self.refused)]) == none)
        #expect(Self.verdict(mine, after: [(Self.request([.userAgent: "sqlmap"]), Self.refused)]) == none)
        #expect(Self.verdict(mine, after: [(Self.request([:]), ResponseHead(status: 403, fields: [.retryAfter: "60"]))]) == none)
        #expect(Self.verdict(mine, after: [(Self.request([:]), ResponseHead(status: 429))]) == none)
        let traced = HTTPFields([HTTPField(name: HTTPField.Name("traceparent") ?? .accept, value: "00-1")])
        #expect(Self.verdict(mine, after: [(Self.request(traced), Self.refused)]) == .proved(.refusesOthers))
    }

    @Test func aPlaceThatAnswersNobodyProvesNothing() {
        let open = (Self.request([:]), Self.ok([:]))
        #expect(Self.verdict(Self.ok(Self.personal), after: [open]) == .accepted(.open))
        #expect(Self.verdict(Self.ok(Self.personal), after: [(Self.request([.userAgent: "x"]), Self.ok([:]))]) == .accepted(.open))
        #expect(Self.verdict(Self.ok([:]), after: [open, (Self.request([.authorization: "bad"]), Self.refused)]) == .accepted(.open))
        #expect(
            Self.verdict(Self.ok([:]), after: [open, (Self.request([:]), Self.refused)]) == .proved(.refusesOthers), "it is closed now")
    }

    @Test func theTablesOfPlacesAreBounded() {
        var places = PlaceAccess()
        let first = Self.request([:], .get, "/0")
        for number in 0..<20_000 {
            let request = Self.request([:], .get, "/\(number)")
            places.note(Self.refused, to: request, asking: AskingFields(request))
        }
        #expect(!places.refusesOthers(than: AskingFields(Self.request()), first))
    }

    // MARK: other credentials than Authorization

    @Test func cookiesAndKeysAreProvedInTheSameWay() throws {
        let key = try #require(HTTPField.Name("X-Api-Key"))
        #expect(Self.verdict(Self.ok([.vary: "Cookie"]), to: Self.request([.cookie: "sid=0123456789abcdef"])) == .proved(.isPersonal))
        #expect(Self.verdict(Self.ok([.vary: "X-Api-Key"]), to: Self.request([key: "k"])) == .proved(.isPersonal))
        #expect(Self.verdict(Self.ok([.vary: "Cookie"]), to: Self.request([key: "k"])) == .accepted(.unmarked))
        let refusal = (Self.request([:]), Self.refused)
        #expect(Self.verdict(Self.ok([:]), to: Self.request([.cookie: "a=1"]), after: [refusal]) == .proved(.refusesOthers))
        let tenant = try #require(HTTPField.Name("X-User"))
        #expect(Self.verdict(Self.ok(Self.personal), to: Self.request([tenant: "ann"]), named: tenant) == .proved(.isPersonal))
    }
}

struct SessionsTests {
    private let second = Sessions.overlap

    private func at(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: 1_000_000 + milliseconds) }

    /// The session that a credential still names at a moment after its renewal.
    private func owner(of credential: String, in sessions: inout Sessions, at milliseconds: Int64) -> String? {
        sessions.arrived(credential, of: credential, now: { at(milliseconds) }).principal
    }

    /// A session that goes on from `a` to `b` at 0 as `s`.
    private func begun() throws -> Sessions {
        var sessions = Sessions()
        let step = sessions.goOn(from: "a", arrivedAt: 0, to: "b", as: "a", orAs: "s", at: at(0))
        #expect(step == Sessions.Step(principal: "s", isNew: true, gone: ["a"]))
        return sessions
    }

    @Test func theOldValueNamesItForASecond() throws {
        var sessions = try begun()
        let early = sessions.arrived("a", of: "s", now: { at(999) })
        #expect(early.principal == "s" && early.ended.isEmpty)
        let late = sessions.arrived("a", of: "s", now: { at(1000) })
        #expect(late.principal == nil && late.ended == ["a"])
        let again = owner(of: "a", in: &sessions, at: 500)
        #expect(again == nil, "whatever the clock says")
    }

    @Test func theOldValueNamesItUntilTheNewOneIsUsed() throws {
        var sessions = try begun()
        let new = sessions.arrived("b", of: "s", now: { at(10) })
        #expect(new.principal == nil && new.ended == ["a"])
        let old = owner(of: "a", in: &sessions, at: 20)
        #expect(old == nil)
    }

    /// A browser has several requests under way with the old value: the answer to each renews it again.
    @Test func requestsUnderWayStayInTheSession() throws {
        var sessions = try begun()
        let before = sessions.count
        _ = sessions.arrived("b", of: "s", now: { at(10) })
        #expect(sessions.successor(of: "a", arrivedAt: before) == "s")
        #expect(sessions.successor(of: "a", arrivedAt: sessions.count) == nil, "a request that came later is another's")
        let step = sessions.goOn(from: "a", arrivedAt: before, to: "c", as: "a", orAs: "other", at: at(5000))
        #expect(step == Sessions.Step(principal: "s", isNew: false, gone: []))
        let late = sessions.goOn(from: "a", arrivedAt: sessions.count, to: "d", as: "a", orAs: "other", at: at(5000))
        #expect(late == nil)
    }

    @Test func itGoesOnFromValueToValue() throws {
        var sessions = try begun()
        for (number, (old, new)) in [("b", "c"), ("c", "d"), ("d", "e")].enumerated() {
            _ = sessions.arrived(old, of: "s", now: { at(Int64(number) * 100) })
            let step = sessions.goOn(from: old, arrivedAt: sessions.count, to: new, as: "s", orAs: "other", at: at(Int64(number) * 100))
            #expect(step == Sessions.Step(principal: "s", isNew: false, gone: [old]))
        }
        for old in ["a", "b", "c"] {
            let owner = owner(of: old, in: &sessions, at: old == "c" ? 1300 : 250)
            #expect(owner == nil, "\(old)")
        }
    }

    /// Several requests under way are renewed, and the browser goes on with one of the values.
    @Test func aValueThatStaysUnusedIsLeftBehind() throws {
        var sessions = try begun()
        let spare = sessions.goOn(from: "a", arrivedAt: 0, to: "c", as: "a", orAs: "x", at: at(100))
        #expect(spare == Sessions.Step(principal: "s", isNew: false, gone: []))
        let early = sessions.arrived("b", of: "s", now: { at(1099) })
        #expect(early.ended == ["a"], "a browser may have sent its request before the answer with c came")
        let late = sessions.arrived("b", of: "s", now: { at(1100) })
        #expect(late.ended == ["c"])
        let again = sessions.arrived("b", of: "s", now: { at(5000) })
        #expect(again.ended == [])
    }

    @Test func theLastValueStaysWhateverTheTimeItIsUsed() throws {
        var sessions = try begun()
        _ = sessions.goOn(from: "a", arrivedAt: 0, to: "c", as: "a", orAs: "x", at: at(100))
        let used = sessions.arrived("c", of: "s", now: { at(90_000) })
        #expect(used.ended == ["a", "b"], "nobody has used b")
        let step = sessions.goOn(from: "c", arrivedAt: sessions.count, to: "d", as: "s", orAs: "x", at: at(90_001))
        #expect(step == Sessions.Step(principal: "s", isNew: false, gone: ["c"]))
    }

    @Test func unusedValuesAreBounded() throws {
        var sessions = try begun()
        var gone: [String] = []
        for number in 0..<40 {
            gone += sessions.goOn(from: "a", arrivedAt: 0, to: "\(number)", as: "a", orAs: "x", at: at(1))?.gone ?? []
        }
        #expect(gone == ["b", "0", "1", "2", "3", "4", "5", "6", "7"])
        for number in 0..<3000 {
            _ = sessions.goOn(from: "x\(number)", arrivedAt: 0, to: "y\(number)", as: "x\(number)", orAs: "z\(number)", at: at(2))
        }
        let forgotten = owner(of: "a", in: &sessions, at: 3)
        #expect(forgotten == nil, "it names nothing")
    }

    @Test func aSessionThatEndedIsForgotten() throws {
        var sessions = try begun()
        sessions.forget("s")
        let late = owner(of: "a", in: &sessions, at: 1)
        #expect(late == nil && sessions.successor(of: "a", arrivedAt: 0) == nil)
    }
}
