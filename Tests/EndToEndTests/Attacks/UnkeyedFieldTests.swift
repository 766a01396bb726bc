// What a request field without a key brings is nobody else's, and what only correlates costs no hit (docs/security-model.md#unkeyed-inputs).
import NIOCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct UnkeyedFieldTests {
    /// An origin may answer by them without a trace in the response.
    private static let selecting = [
        "X-User-Id", "X-User", "X-Username", "X-User-Email", "Remote-User", "X-Remote-User", "X-Auth-Request-User", "X-WebAuth-User",
        "X-Authenticated-User", "X-Authentik-Username", "X-Goog-Authenticated-User-Email", "X-MS-Client-Principal-Name",
        "CF-Access-Authenticated-User-Email", "Tailscale-User-Login", "X-Pomerium-Claim-Email", "X-Vouch-User", "X-Shib-Uid",
        "X-Consumer-Username", "SSL-Client-DN", "X-SSL-Client-Subject", "X-Client-Cert", "From", "X-Impersonate-User", "X-Sudo", "X-Role",
        "X-Roles", "X-Groups", "X-Login", "X-Member-Id", "X-Visitor-Id", "X-Hasura-Role", "X-Identity",
        "X-Tenant-ID", "X-Tenant", "Tenant-Id", "X-Scope-OrgID", "X-Org", "X-Organization-Id", "X-Account-Id", "X-Company", "X-Customer-Id",
        "X-Team", "X-Workspace-Id", "X-Project", "X-Realm", "X-Store", "X-Shop-Domain", "X-Site", "X-Brand", "X-Market",
        "X-Device-Id", "X-Device", "X-Device-Type", "X-UA-Device", "X-Mobile", "CloudFront-Is-Mobile-Viewer", "CloudFront-Viewer-Country",
        "CF-IPCountry", "X-Country", "X-Country-Code", "X-Region", "X-Geo-Country", "X-AppEngine-Country", "X-Vercel-IP-Country",
        "X-Locale",
        "X-Language", "X-Currency", "X-Timezone",
        "X-Base-URL", "X-URL", "X-URI", "X-Path", "X-Path-Info", "X-Script-Name", "X-Prefix", "X-Route", "X-Backend", "X-Upstream",
        "X-Domain",
        "X-Hostname", "X-Scheme", "X-Proto", "X-Port", "X-Api-Version", "RSC", "Next-Url", "Next-Router-State-Tree", "Next-Router-Prefetch",
        "X-Nextjs-Data", "X-Middleware-Prefetch", "X-Invoke-Path", "HX-Request", "HX-Target", "Turbo-Frame", "X-PJAX", "X-Inertia",
        "X-Livewire", "X-Requested-With", "X-Partial", "X-Variant", "X-Experiment",
    ]
    private static let unknown = [
        "X-Foo", "X-Theme", "X-Debug-Label", "X-Client-Version", "X-Csrf-Token", "X-Session-Id", "X-Nonce", "npm-session", "User-Agent",
        "Accept-Language",
    ]
    private static let correlating = [
        "traceparent", "tracestate", "baggage", "b3", "X-B3-TraceId", "X-B3-SpanId", "X-Request-Id", "X-Correlation-Id", "sentry-trace",
        "X-Amzn-Trace-Id", "X-Cloud-Trace-Context", "uber-trace-id", "x-datadog-trace-id", "Request-Id", "X-Client-Trace-Id",
        "X-Transaction-Id", "amz-sdk-invocation-id",
    ]

    @Test(arguments: AttackedServer.policies) func whatSelectsCountsAsNamedByVary(_ policy: String) async throws {
        try await AttackedServer.with(policy: policy) { attacked in
            for (number, name) in Self.selecting.enumerated() {
                let path = "/s\(number)"
                func ask(_ value: String?, _ body: String) async throws -> String {
                    try await attacked.send(.init(path: path, fields: value.map { ["\(name): \($0)"] } ?? [], answer: .body(body))).text
                }
                // In turn: each one's own, and no one's for those that have none.
                var got: [String] = []
                let turns: [(String?, String)] = [("evil.test", "evil"), (nil, "good"), ("other.test", "other")]
                for (value, body) in turns { got.append(try await ask(value, body)) }
                for (value, _) in turns.reversed() { got.append(try await ask(value, "later")) }
                #expect(got == ["evil", "good", "other", "other", "good", "evil"], "\(name)")
                #expect(attacked.asked(path) == 3, "\(name)")
            }
        }
    }

    @Test(arguments: AttackedServer.policies) func whatAnUnknownFieldIsRepeatedFromIsItsSendersAlone(_ policy: String) async throws {
        try await AttackedServer.with(policy: policy) { attacked in
            for (number, name) in Self.unknown.enumerated() {
                let path = "/u\(number)"
                for (mark, value) in [("a", "evil.test"), ("b", "<script>alert(1)</script>"), ("c", "evil")] {
                    let place = path + mark
                    let poisoned = try await attacked.send(.init(path: place, fields: ["\(name): \(value)"], answer: .reflection(of: name)))
                    #expect(poisoned.text == value)
                    let victim = try await attacked.send(.init(path: place, fields: ["\(name): good.test"], answer: .body("good")))
                    #expect(victim.text == "good", "\(name): \(value)")
                    // A newer copy that repeats nothing is for all, for those who bring the value too.
                    let again = try await attacked.send(.init(path: place, fields: ["\(name): \(value)"], answer: .body("later")))
                    #expect(again.text == "good" && attacked.asked(place) == 2, "\(name): \(value)")
                }
                // In the head.
                let head = Answer.body("x", "Link: <https://evil.test/a.js>; rel=preload")
                _ = try await attacked.send(.init(path: path + "h", fields: ["\(name): evil.test"], answer: head))
                let victim = try await attacked.send(.init(path: path + "h", fields: ["\(name): good.test"], answer: .body("good")))
                #expect(victim.text == "good" && victim["link"] == nil, "\(name)")
                // What repeats nothing is everybody's.
                for value in ["one-of-them", "another"] {
                    let reply = try await attacked.send(.init(path: path + "n", fields: ["\(name): \(value)"], answer: .body("page")))
                    #expect(reply.text == "page")
                }
                #expect(attacked.asked(path + "n") == 1, "\(name)")
            }
        }
    }

    @Test(arguments: AttackedServer.policies) func whatOnlyCorrelatesCostsNoHit(_ policy: String) async throws {
        try await AttackedServer.with(policy: policy) { attacked in
            for (number, name) in Self.correlating.enumerated() {
                let path = "/c\(number)"
                for value in ["0af7651916cd43dd-1", "0af7651916cd43dd-2", "0af7651916cd43dd-3"] {
                    let repeating = Answer.body("page", "X-Request-Id: \(value)", "X-Trace: \(value)")
                    let reply = try await attacked.send(.init(path: path, fields: ["\(name): \(value)"], answer: repeating))
                    #expect(reply.text == "page")
                }
                #expect(attacked.asked(path) == 1, "\(name)")
            }
        }
    }

    @Test func anEchoIsFoundInACodedBody() async throws {
        try await PlayedWorld.with({ asked in
            let value = asked["x-foo"] ?? "nobody"
            let text = String(repeating: "<p>some text of a page</p>\n", count: 2000) + value
            let fields = ["Cache-Control: public, max-age=600", "Content-Type: text/html", "Content-Encoding: gzip"]
            switch asked.path {
            case "/gzip": return .init(fields: fields, body: Array(gzipped(text).readableBytesView))
            // Nobody here can read it.
            case "/br": return .init(fields: fields.dropLast() + ["Content-Encoding: br"], body: Array(value.utf8.reversed()))
            default: return .init(fields: fields.dropLast(), body: Array(text.utf8))
            }
        }) { world in
            for path in ["/gzip", "/br", "/plain"] {
                let codings = "Accept-Encoding: gzip, br"
                let evil = try await world.get(path, [codings, "X-Foo: evil.test"])
                #expect(evil.status == 200)
                try await world.stored(path)
                let victim = try await world.get(path, [codings])
                #expect(victim.body != evil.body, "\(path)")
                #expect(world.site.count(path) == 2, "\(path)")
                let again = try await world.get(path, [codings])
                #expect(again.body == victim.body && world.site.count(path) == 2, "\(path)")
            }
        }
    }

    /// Requests of which no two are alike: each has its own trace, its own id, and what programs say of themselves.
    @Test func requestsOfWhichNoTwoAreAlikeHit() async throws {
        try await PlayedWorld.with({ asked in
            .text(
                "{\"path\":\"\(asked.path)\"}", "Cache-Control: public, max-age=600", "Content-Type: application/json",
                "X-Request-Id: \(asked["x-request-id"] ?? "")")
        }) { world in
            for number in 1...20 {
                let reply = try await world.get(
                    "/stored/hot",
                    [
                        "traceparent: 00-0000000000000000000000000000\(1000 + number)-000000000000\(1000 + number)-01",
                        "X-Request-Id: 0000\(1000 + number)-7c1e-4d53-9a2f-00000000\(1000 + number)",
                        "User-Agent: NotesApp/4.2.1 (Linux; x86_64) okhttp/4.12.0", "Accept: application/json",
                        "Accept-Language: en-GB,en;q=0.9,de;q=0.7", "X-Client-Version: 4.2.1",
                    ])
                #expect(number == 1 || reply["cache-status"]?.contains("hit") == true, "\(number): \(reply.heads)")
            }
            #expect(world.site.count("/stored/hot") == 1)
        }
    }

    /// A client that names its device reads its own writes, and no other device does.
    @Test func ownWritesAreThoseOfTheirSender() async throws {
        try await PlayedWorld.with({ asked in
            let device = asked["x-device-id"] ?? "none"
            return asked.method == "GET"
                ? .text("\(device) before", "Cache-Control: max-age=600", "Content-Type: text/plain", "ETag: \"\(device)\"")
                : .text("", status: 204)
        }) { world in
            let devices = ["one", "two"].map { ["X-Device-Id: \($0)"] }
            for device in devices { _ = try await world.get("/me", device) }
            _ = try await world.send("PUT", "/me", fields: devices[0] + ["Content-Type: text/plain"], body: "one after")
            try await world.turn("offline")
            let (mine, theirs) = (try await world.get("/me", devices[0]), try await world.get("/me", devices[1]))
            #expect(mine.text == "one after" && theirs.text == "two before", "\(mine.text), \(theirs.text)")
            try await world.turn("auto")
            _ = try await world.send("DELETE", "/me", fields: devices[0])
            try await world.turn("offline")
            let gone = try await world.get("/me", devices[0])
            #expect(gone.status != 200)
        }
    }
}
