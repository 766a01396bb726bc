// Where a 302 or 303 in answer to a write leads, in the languages and frameworks that people use (docs/outbox.md#redirects).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct WriteRedirectTests {
    private func judge(
        _ target: String, _ location: String, by method: HTTPRequest.Method = .post, principal: String? = "ada",
        scheme: OriginAddress.Scheme = .https
    ) -> Disposition {
        var write = operation(method, principal: principal)
        write.request = RequestHead(method: method, origin: OriginAddress(scheme: scheme, host: "api.example.com"), target: target)
        return judged(write, answer(303, [.location: location]))
    }

    @Test(arguments: [
        // Rails, Django, Laravel, Symfony, Spring, Express, Flask
        ("/notes", "/notes/7"), ("/notes", "/notes"), ("/notes", "/notes?created=1"), ("/notes", "/notes/my-title"), ("/notes/", "/notes"),
        ("/notes/7", "/notes/7"), ("/notes/7", "/notes"), ("/notes/7/edit", "/notes/7"), ("/notes/7/edit", "/notes"),
        ("/notes/add/", "/notes/8/"), ("/notes/new", "/notes"), ("/admin/notes/note/add/", "/admin/notes/note/7/change/"),
        ("/admin/notes/note/7/change/", "/admin/notes/note/"), ("/owners/11/pets/2/visits/new", "/owners/11"), ("/1/update", "/"),
        ("/notes/7/comments", "/notes/7#comment-3"), ("/notes/7/toggle", "/notes"), ("/notes", "https://api.example.com/notes/7"),
        ("/notes", "http://api.example.com/notes/7"), ("/notes/save.php", "/notes/index.php?saved=1"), ("/notes/save.php", "save.php?ok"),
        // MediaWiki, Drupal, Redmine
        ("/w/index.php?title=Pool&action=submit", "/wiki/Pool"), ("/w/index.php?title=Pool&action=submit", "/w/index.php/Pool"),
        ("/index.php?title=Pool&action=submit", "/index.php?title=Pool"), ("/index.php?title=Blå&action=submit", "/index.php/Bl%C3%A5"),
        ("/comment/reply/12", "/node/12#comment-5"), ("/projects/pool/issues", "/issues/12"), ("/uploads", "/uploads/3f2b-9a"),
        // Words of logins that are other pages, and an address that is shown.
        ("/admin/auth/group/add/", "/admin/auth/group/"), ("/admin/login/attempt/add/", "/admin/login/attempt/"),
        ("/notes?next=/x", "/notes"),
    ]) func leadsToItsOwnPlace(_ target: String, _ location: String) {
        #expect(judge(target, location).state == .delivered, "\(target) → \(location)")
        #expect(judge(target, location, principal: nil).state == .delivered)
    }

    @Test(arguments: [
        ("/notes", "/anmelden"), ("/notes", "/connexion"), ("/notes", "/iniciar-sesion"), ("/notes", "/ログイン"), ("/notes", "/session/neu"),
        ("/api/notes", "/api/anmelden"), ("/api/v1/notes", "/api/v2/einloggen"), ("/de/notes", "/de/konto"),
        ("/notes?lang=de", "/anmelden?lang=de"),
        ("/notes?sid=a1b2", "/anmelden?sid=a1b2"), ("/t/42/notes", "/t/42/anmelden"), ("/notes/7/edit", "/7/edit/willkommen"),
        ("/notes", "/"), ("/notes", "/?m=1"), ("/notes/new", "/dashboard"), ("/notes", "/wartung"), ("/notes", "/500.html"),
        ("/notes", "/maintenance"), ("/notes", "myapp://done"), ("/", "/anmelden"),
    ]) func leadsElsewhere(_ target: String, _ location: String) throws {
        let disposition = judge(target, location)
        #expect((disposition.state, disposition.reason) == (.uncertain, .redirected), "\(target) → \(location)")
        let detail = try #require(disposition.detail)
        #expect(detail.contains(location.prefix { $0 != "?" }), "\(detail)")
        #expect(judge(target, location, principal: nil).state == .uncertain)
    }

    @Test(arguments: [
        ("/notes", "/anmelden?zurueck=/notes"), ("/notes", "/connexion?retour=%2Fnotes"),
        ("/notes?a=1", "/x?goto=https%3A%2F%2Fapi.example.com%2Fnotes%3Fa%3D1"),
        ("/notes", "/cas?service=http%3A%2F%2Fapi.example.com%2Fnotes"), ("/notes", "/notes/eintritt?came_from=/notes"),
        ("/app/notes", "/app?r=%252Fapp%252Fnotes"), ("/notes", "/users/sign_in"), ("/notes", "/login.php"), ("/notes", "/auth/realm"),
    ]) func leadsToALogin(_ target: String, _ location: String) {
        let disposition = judge(target, location)
        #expect((disposition.state, disposition.reason) == (.parked, .auth), "\(target) → \(location)")
        #expect(!disposition.countsAsAnswered && disposition.detail?.contains("login") == true)
        let nobodys = judge(target, location, principal: nil)
        #expect(nobodys.state == .parked && nobodys.nextAttemptAt.map { $0 >= noon + .seconds(10) } == true && nobodys.countsAsAnswered)
    }

    @Test func upgradesToHTTPSDoNothing() {
        #expect(judge("/notes", "https://api.example.com/notes", scheme: .http).state == .uncertain)
        #expect(judge("/notes", "https://api.example.com/notes/7", scheme: .http).state == .delivered)
    }

    @Test(arguments: [HTTPRequest.Method.put, .patch, .delete]) func judgesEveryMethod(_ method: HTTPRequest.Method) {
        #expect(judge("/notes/7", "/notes/8", by: method).state == .delivered)
        #expect(judge("/notes/7", "/anmelden", by: method).state == .uncertain)
    }

    @Test func acceptsWhatARouteOrAResourceSays() {
        var settings = context()
        settings.reading.isLogout = true
        let away = answer(302, [.location: "/goodbye"])
        #expect(judged(operation(), away, context: settings).state == .delivered)
        settings = context()
        settings.reading.namesEntity = true
        #expect(judged(operation(), away, context: settings).state == .delivered)
        #expect(judged(operation(), answer(302)).state == .delivered)
    }

    /// Sent again, it would be redirected again: neither its method nor a key makes a resend useful.
    @Test func redirectedWritesAreNotSentAgainByThemselves() {
        for settings in [context(), context(honoured: .yes)] {
            var replay = Replay(["notes": settings])
            let row = summary(1, method: .put)
            #expect(replay.accept(row) == sent(1))
            #expect(replay.answered(row, answer(302, [.location: "/anmelden"])) == [])
            var uncertain = summary(1, .uncertain, reason: .redirected, method: .put, sent: noon)
            for wait in [TimeSpan.seconds(1), .seconds(15), .seconds(15)] {
                #expect(replay.later(wait) == [.look(id: "1", sequence: 1)])
                var looked = inflight(uncertain)
                (looked.state, looked.reason) = (.uncertain, .redirected)
                let actions = replay.step(.looked(looked, .unknown))
                guard case .move(_, _, let disposition)? = actions.first else { return #expect(Bool(false), "\(actions)") }
                #expect(disposition.reason == .redirected)
                _ = replay.settle(actions, of: uncertain)
                uncertain.probes += 1
            }
            #expect(replay.later(.minutes(10)) == [])
        }
    }

    /// A place to which writes of different forms are led is the upstream's login, whatever it is called; or its home page, so that only what
    /// may be sent again waits for a credential.
    @Test(arguments: [true, false]) func aPlaceForEverythingIsALogin(mayBeSentAgain: Bool) {
        var replay = Replay(["notes": context(honoured: mayBeSentAgain ? .yes : .no)])
        func state(_ sequence: Int64, _ target: String, _ location: String) -> OperationState? {
            let row = summary(sequence, lane: "\(sequence)", principal: "ada")
            _ = replay.accept(row)
            var write = inflight(row)
            write.request.target = target
            let actions = replay.step(.attempted(write, answer(302, [.location: location]), body: []))
            defer { _ = replay.settle(actions, of: row) }
            guard case .record(_, _, let disposition)? = actions.first else { return nil }
            return disposition.state
        }
        #expect(state(1, "/api/notes", "/anmelden") == .uncertain)
        #expect(state(2, "/api/notes", "/anmelden") == .uncertain)
        #expect(state(3, "/api/tasks", "/anmelden?x=1") == (mayBeSentAgain ? .parked : .uncertain))
        #expect(state(4, "/todos/7/toggle", "/fertig") == .uncertain)
        #expect(state(5, "/todos/8/toggle", "/fertig") == .uncertain)
        #expect(state(6, "/a", "/") == .uncertain && state(7, "/b", "/") == .uncertain)
    }
}
