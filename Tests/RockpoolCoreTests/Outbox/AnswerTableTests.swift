// The table of docs/outbox.md#answers, row by row.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct AnswerTableTests {
    struct Row: Sendable, CustomStringConvertible {
        var method: HTTPRequest.Method
        var status: Int
        var state: OperationState
        var reason: OperationReason?
        var counts = true

        init(_ method: HTTPRequest.Method, _ status: Int, _ state: OperationState, _ reason: OperationReason? = nil, counts: Bool = true) {
            (self.method, self.status, self.state, self.reason, self.counts) = (method, status, state, reason, counts)
        }

        var description: String { "\(method) \(status)" }
    }

    static let rows: [Row] = [
        Row(.post, 200, .delivered), Row(.post, 201, .delivered), Row(.put, 204, .delivered), Row(.post, 207, .delivered),
        Row(.post, 202, .delivered, .accepted), Row(.post, 303, .delivered), Row(.post, 302, .delivered),
        Row(.post, 301, .parked, .redirected), Row(.put, 308, .parked, .redirected), Row(.post, 304, .dead, .rejected),
        Row(.post, 400, .dead, .rejected), Row(.put, 405, .dead, .rejected), Row(.post, 413, .dead, .rejected),
        Row(.patch, 415, .dead, .rejected), Row(.post, 422, .dead, .rejected), Row(.post, 431, .dead, .rejected),
        Row(.post, 402, .dead, .rejected), Row(.post, 403, .dead, .rejected), Row(.post, 451, .dead, .rejected),
        Row(.post, 401, .parked, .auth, counts: false), Row(.put, 407, .parked, .auth, counts: false),
        Row(.post, 419, .parked, .auth, counts: false),
        Row(.delete, 404, .delivered, .alreadyGone), Row(.delete, 410, .delivered, .alreadyGone),
        Row(.put, 404, .conflicted, .editDelete), Row(.patch, 410, .conflicted, .editDelete), Row(.post, 404, .dead, .rejected),
        Row(.put, 409, .conflicted, .editEdit), Row(.patch, 412, .conflicted, .editEdit), Row(.delete, 412, .conflicted, .deleteEdit),
        Row(.put, 428, .conflicted, .editEdit),
        Row(.post, 408, .pending, counts: false), Row(.post, 421, .pending, counts: false), Row(.post, 425, .pending, counts: false),
        Row(.post, 429, .pending, counts: false), Row(.post, 503, .pending, counts: false),
        Row(.post, 423, .pending), Row(.put, 424, .pending),
        Row(.post, 500, .uncertain, .lostAnswer), Row(.patch, 502, .uncertain, .lostAnswer), Row(.post, 504, .uncertain, .lostAnswer),
        Row(.put, 500, .pending), Row(.delete, 502, .pending), Row(.put, 599, .pending),
        Row(.post, 501, .dead, .rejected), Row(.put, 505, .dead, .rejected),
        Row(.post, 511, .pending, counts: false),
    ]

    @Test(arguments: rows) func row(_ row: Row) {
        // With a principal, because a request without a credential cannot be repaired by a new one.
        let principal = [401, 407, 419].contains(row.status) ? "ada" : nil
        let disposition = judged(operation(row.method, principal: principal), answer(row.status))
        #expect(disposition.state == row.state)
        #expect(disposition.reason == row.reason)
        #expect(disposition.countsAsAnswered == row.counts)
        #expect((disposition.nextAttemptAt != nil) == [.pending, .uncertain].contains(row.state))
        #expect(OperationMachine.permits(from: .inflight, to: disposition.state))
    }

    @Test(arguments: [nil, "ada"]) func theDemandOfAProxyParks(principal: String?) {
        let refused = TransferFailure(kind: .protocolError, sent: .yes, detail: "an origin asked for a proxy's credentials")
        for method in [HTTPRequest.Method.put, .post] {
            let disposition = judged(operation(method, answered: 50, principal: principal), .failed(refused))
            #expect((disposition.state, disposition.reason) == (.parked, .auth))
            #expect(!disposition.countsAsAnswered && disposition.nextAttemptAt.map { $0 >= noon + .seconds(10) } == true)
        }
        #expect(judged(operation(.put), answer(407)).state == .parked)
    }

    @Test(arguments: [401, 419]) func nobodysWriteThatIsRefusedForWantOfACredentialIsDead(_ status: Int) {
        #expect(judged(operation(.put), answer(status)).state == .dead)
    }

    @Test(arguments: [(IdempotencySettings.Honoured.yes, OperationState.pending), (.unknown, .uncertain), (.no, .uncertain)])
    func onlyAnHonouredKeyMakesAPostResendable(_ honoured: IdempotencySettings.Honoured, _ state: OperationState) {
        #expect(judged(operation(), answer(500), context: context(honoured: honoured)).state == state)
        let lost = AttemptOutcome.failed(TransferFailure(kind: .reset, sent: .yes))
        #expect(judged(operation(), lost, context: context(honoured: honoured)).state == state)
    }

    /// WebDAV's methods may be sent again; the second answer of a MOVE or MKCOL that was applied is a refusal.
    @Test(arguments: ["MKCOL", "MOVE", "COPY"]) func aLostWebDAVWriteIsSentAgain(_ name: String) throws {
        let method = try #require(HTTPRequest.Method(rawValue: name))
        let lost = AttemptOutcome.failed(TransferFailure(kind: .reset, sent: .yes))
        #expect(judged(operation(method), lost, context: context(honoured: .no)).state == .pending)
        var again = operation(method)
        #expect(judged(again, answer(404)).state == .dead)
        again.lostAt = noon
        #expect(judged(again, answer(404)).state == (name == "MOVE" ? .delivered : .dead))
    }

    /// An edit of what the upstream never had meets a wrong path: there is nothing that a person could decide between.
    @Test(arguments: [HTTPRequest.Method.put, .patch]) func anEditOfWhatNobodyKnowsIsRefused(_ method: HTTPRequest.Method) {
        var unknown = context()
        unknown.reading.knowsEntity = false
        let verdict = judged(operation(method), answer(404), context: unknown)
        #expect(verdict.state == .dead && verdict.reason == .rejected)
        #expect(judged(operation(method), answer(410), context: unknown).state == .conflicted, "it was there")
    }

    @Test func theKeysTimeStartsAtTheFirstSend() {
        let keyed = context(honoured: .yes, ttl: .hours(1))
        #expect(judged(operation(), answer(500), context: keyed, now: noon + .milliseconds(3_599_999)).state == .pending)
        #expect(judged(operation(), answer(500), context: keyed, now: noon + .hours(1)).state == .uncertain)
        #expect(keyed.permitsResend(of: operation(firstSentAt: nil), now: noon + .days(30)))
        #expect(keyed.needsFreshConnection(for: operation(), now: noon + .hours(1)))
    }

    /// A first attempt in the future means that the clock has been set back since.
    @Test func aClockSetBackByAKeysLifeEndsIt() {
        let keyed = context(honoured: .yes, ttl: .hours(1))
        #expect(judged(operation(), answer(500), context: keyed, now: noon - .milliseconds(3_599_999)).state == .pending)
        #expect(judged(operation(), answer(500), context: keyed, now: noon - .hours(1)).state == .uncertain)
    }

    @Test func aRefusedCredentialIsTriedOnceMore() {
        #expect(judged(operation(principal: "anna"), answer(403)).state == .pending)
        #expect(judged(operation(answered: 1, principal: "anna"), answer(403)).state == .dead)
    }

    @Test(arguments: [
        #"{"title":"A request is outstanding for this Idempotency-Key"}"#, #"{"error":{"code":"idempotency_key_in_use"}}"#,
    ])
    func aKeyInProgressIsNoConflict(_ body: String) {
        let disposition = judged(operation(), answer(409), body: body)
        #expect(disposition.state == .pending)
        #expect(!disposition.countsAsAnswered)
        #expect(disposition.pauseUpstreamUntil == nil)
        #expect(judged(operation(), answer(409), body: #"{"title":"edited by someone else"}"#).state == .conflicted)
    }

    @Test func theKeyItselfMayBeTheTrouble() throws {
        let reused = judged(operation(), answer(422), body: #"{"title":"Idempotency-Key is already used"}"#)
        #expect(reused.state == .uncertain)
        let name = try #require(HTTPField.Name("Repeatability-Result"))
        let old = judged(operation(), answer(412, [name: "rejected"]))
        #expect((old.state, old.reason) == (.dead, .tooOld))
    }

    @Test(arguments: [429, 503]) func throttlingPausesTheUpstream(_ status: Int) throws {
        let disposition = judged(operation(), answer(status, [.retryAfter: "30"]), random: 0)
        #expect(disposition.nextAttemptAt == noon + .seconds(30))
        #expect(disposition.pauseUpstreamUntil == disposition.nextAttemptAt)
        let jittered = try #require(judged(operation(), answer(status, [.retryAfter: "30"]), random: 0.99).nextAttemptAt)
        #expect(jittered > noon + .seconds(30) && jittered <= noon + .seconds(33))
    }

    @Test func whatAnswersInTheUpstreamsPlaceIsCaptive() {
        let sendsJSON: HTTPFields = [.contentType: "application/json"]
        let page: HTTPFields = [.contentType: "text/html; charset=utf-8"]
        let text = "<!doctype html>"
        for outcome in [answer(200, page), answer(302, [.location: "http://login.portal/"]), answer(308, [.location: "//portal/x"])] {
            let disposition = judged(operation(fields: sendsJSON), outcome, body: text)
            #expect(disposition.state == .pending && disposition.isCaptive && !disposition.countsAsAnswered)
        }
        // An HTML page is a valid response where the request accepts one.
        let form: HTTPFields = [.contentType: "application/x-www-form-urlencoded"]
        #expect(judged(operation(fields: form), answer(200, page), body: text).state == .delivered)
        let browser: HTTPFields = [.accept: "text/html, application/json", .contentType: "application/json"]
        #expect(judged(operation(fields: browser), answer(200, page), body: text).state == .delivered)
        #expect(judged(operation(fields: [.accept: "application/json"]), answer(200, page), body: text).isCaptive)
    }

    /// Frameworks call an empty answer, and every text, `text/html`.
    @Test(arguments: [(201, ""), (200, ""), (204, ""), (200, "ok"), (200, "Créé"), (202, "{}")])
    func anAnswerThatIsNoPageIsDeliveredWhateverTypeItClaims(status: Int, body: String) {
        let sendsJSON: HTTPFields = [.contentType: "application/json", .accept: "application/json"]
        #expect(judged(operation(fields: sendsJSON), answer(status, [.contentType: "text/html"]), body: body).state == .delivered)
    }

    /// What the engine has found to be the upstream's own is judged by its status.
    @Test func anAnswerThatIsJudgedHasNoSign() {
        var judgedContext = context(honoured: .no)
        judgedContext.reading.isJudged = true
        let page = answer(200, [.contentType: "text/html"])
        let given = operation(fields: [.accept: "application/json"])
        #expect(judged(given, page, body: "<html>", context: judgedContext).state == .delivered)
    }

    @Test(arguments: ["/login", "/users/sign_in?back=1", "https://api.example.com/auth", "login.php"])
    func aLoginPageParks(_ location: String) {
        let disposition = judged(operation(principal: "ada"), answer(302, [.location: location]))
        #expect((disposition.state, disposition.reason) == (.parked, .auth))
        #expect(judged(operation(), answer(303, [.location: "/v1/notes/loginfo"])).state == .delivered)
        // Without a principal no sign-in can follow: the operation is retried, and given up in the end.
        let nobodys = judged(operation(), answer(302, [.location: location]))
        #expect(nobodys.state == .parked && nobodys.nextAttemptAt.map { $0 >= noon + .seconds(10) } == true && nobodys.countsAsAnswered)
        #expect(judged(operation(answered: 50), answer(302, [.location: location])).state == .dead)
    }

    /// A site may use the words of logins for other pages: a write that it answers with a redirect to one of them has taken effect.
    @Test func aPageNamedLikeALoginIsNone() {
        for (target, location) in [
            ("/admin/auth/group/add/", "/admin/auth/group/"), ("/admin/login/attempt/add/", "/admin/login/attempt/"),
            ("/v1/notes", "https://auth.example.com/v1/notes/1"),
        ] {
            var write = operation(principal: "ada")
            let host = location.hasPrefix("https:") ? "auth.example.com" : "api.example.com"
            write.request = RequestHead(method: .post, origin: OriginAddress(scheme: .https, host: host, port: 443), target: target)
            #expect(judged(write, answer(302, [.location: location])).state == .delivered, "\(target) \(location)")
            let login = judged(write, answer(302, [.location: "/admin/login/?next=\(target)"]))
            #expect((login.state, login.reason) == (.parked, .auth), "\(target)")
        }
    }
}
