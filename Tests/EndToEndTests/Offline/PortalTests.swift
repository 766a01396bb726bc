// A captive portal in place of the API: no copy and no write is lost (docs/caching.md#portals-and-probes *good copy*; RFC 6585 §6;
// docs/reference/behaviour.md#portals `expect`).
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct PortalTests {
    /// The response of the portal to every request.
    enum Portal: String, CaseIterable {
        case html, json, elsewhere, within, login

        /// Portals remember the URL that was asked for in theirs.
        fileprivate func answer(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
            switch self {
            case .html: .text("<!doctype html><title>portal</title>", "Content-Type: text/html")
            case .json: .text(#"{"portal":true}"#, "Content-Type: application/json")
            case .elsewhere: .text("portal", status: 302, "Location: http://login.example/?dst=\(asked.path)")
            case .within: .text("portal", status: 302, "Location: /login")
            case .login: .text("<!doctype html><title>portal</title>", status: 511, "Content-Type: text/html")
            }
        }
    }

    private static let idempotency: JSONValue = ["honoured": "yes", "max_processing": "1s"]
    private static let probe: JSONValue = ["path": "/healthz", "interval": "1s", "expect": 204]

    private func read(_ world: PlayedWorld, times: Int = 1) async throws {
        for _ in 0..<times {
            for item in 1...5 {
                let reply = try await world.get("/items/\(item)")
                #expect(reply.status == 200 && reply.text == PortalledAPI.item(item), "item \(item): \(reply.status) \(reply.text)")
            }
        }
    }

    private func post(_ body: String, _ world: PlayedWorld) async throws -> Curl {
        try await world.send("POST", "/items", fields: ["Content-Type: application/json"], body: body)
    }

    /// Runs `body` behind the portal, with stale copies of five items.
    private func behind(
        _ portal: Portal, _ members: JSONValue, _ body: (PlayedWorld, PortalledAPI) async throws -> Void
    ) async throws {
        let api = PortalledAPI()
        try await PlayedWorld.with(upstream: members, { api.answer($0) }) { world in
            try await read(world)
            for item in 1...5 { try await world.stored("/items/\(item)") }
            try await #expect(post(#"{"first":true}"#, world).status == 201)
            api.stand(portal)
            try await Task.sleep(for: .milliseconds(1200))
            try await body(world, api)
        }
    }

    @Test(arguments: Portal.allCases) func aPortalTakesNoCopyAndNoWrite(_ portal: Portal) async throws {
        try await behind(portal, ["probe": Self.probe, "idempotency": Self.idempotency]) { world, api in
            var queued: [String] = []
            var refused: [String] = []
            for round in 1...3 {
                try await read(world, times: 2)
                let body = #"{"round":\#(round)}"#
                let reply = try await post(body, world)
                #expect([202, 503].contains(reply.status), "\(reply.status) \(reply.text)")
                if reply.status == 202 { queued.append(body) } else { refused.append(body) }
            }
            api.stand(nil)
            try await world.server.outboxIsEmpty(within: .seconds(40))
            for body in queued { #expect(api.effects(of: body) == 1, "\(body) took effect \(api.effects(of: body)) times") }
            for body in refused { #expect(api.effects(of: body) == 0, "\(body) was refused and took effect") }
            try await read(world, times: 2)
        }
    }

    /// Without a declared probe, only the appearance of a response can reveal the portal.
    @Test(arguments: [Portal.html, .elsewhere, .login]) func withoutAProbeTheLookOfAnAnswerTells(_ portal: Portal) async throws {
        try await behind(portal, ["idempotency": Self.idempotency]) { world, api in
            for round in 1...3 {
                try await read(world, times: 2)
                let reply = try await post(#"{"round":\#(round)}"#, world)
                #expect(reply.status != 200, "\(reply.text)")
            }
            try await world.turn("offline")
            try await read(world)
            try await world.turn("auto")
            api.stand(nil)
            try await world.server.outboxIsEmpty(within: .seconds(40))
            try await read(world)
        }
    }
}

/// An upstream that answers is believed: a sign of a portal concerns one URL, and soon nothing (docs/caching.md#portals-and-probes).
@Suite(.timeLimit(.minutes(2)), .serialized) struct BelievedAnswerTests {
    private static let type = "application/json"
    private static let json = ["Content-Type: application/json"]

    private func state(_ world: PlayedWorld) async throws -> String? {
        try await world.server.get("/v1/network").json?["upstreams"]?.array?.first?["reachability"]?.string
    }

    /// Returns the answer to a GET of an API that serves `body` as `type` and varies by language.
    private static func page(_ type: String, _ body: String) -> PlayedSite.Said {
        .text(body, "Content-Type: \(type)", "Cache-Control: max-age=0", "Vary: Accept-Language")
    }

    @Test(arguments: [
        ("application/javascript", "text/javascript"), ("application/xml", "application/rss+xml"),
        ("application/octet-stream", "application/zip"), ("text/html", "application/json"), ("text/csv", "application/json"),
        ("image/png", "image/webp"), ("text/plain; charset=iso-8859-1", "application/yaml"), ("application/json", "text/plain"),
    ])
    func aChangedTypeIsBelievedAtOnce(from: String, to: String) async throws {
        let isChanged = Mutex(false)
        let play: PlayedSite.Play = { _ in isChanged.withLock { $0 } ? Self.page(to, "new") : Self.page(from, "old") }
        try await PlayedWorld.with(play) { world in
            for language in ["de", "fr"] {
                try await #expect(world.get("/a", ["Accept-Language: \(language)"]).text == "old")
                try await world.stored("/a")
            }
            isChanged.withLock { $0 = true }
            for fields in [["Cache-Control: no-cache"], ["Accept: text/css"], []] {
                for language in ["de", "fr", "pt"] {
                    let reply = try await world.get("/a", fields + ["Accept-Language: \(language)"])
                    #expect(reply.text == "new" && reply["content-type"] == to, "\(fields) \(language): \(reply["cache-status"] ?? "")")
                }
            }
            try await #expect(state(world) == "online")
        }
    }

    /// Flask answers `return '', 204` with `text/html`, tastypie a create.
    private static let empty = [
        "204 No Content\r\nContent-Type: text/html; charset=utf-8",
        "201 Created\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 0",
        "201 Created\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked", "200 OK\r\nContent-Type: text/html\r\nContent-Length: 0",
        "201 Created\r\nContent-Type: text/html\r\nContent-Length: 2",
    ]

    private static func wire(_ head: String) -> PlayedSite.Said {
        let body = head.contains("chunked") ? "0\r\n\r\n" : head.hasSuffix("2") ? "ok" : ""
        return PlayedSite.Said(wire: Array("HTTP/1.1 \(head)\r\n\r\n\(body)".utf8))
    }

    @Test(arguments: empty) func anAnswerWithoutAPageIsNoPortals(head: String) async throws {
        let fields = Self.json + ["Accept: application/json"]
        let play: PlayedSite.Play = { asked in
            asked.path == "/first" || asked.method == "GET" ? .text("{}", "Content-Type: application/json") : Self.wire(head)
        }
        try await PlayedWorld.with(play) { world in
            try await #expect(world.send("POST", "/first", fields: fields, body: "{}").status == 200)
            let status = Int(head.prefix(3))
            for method in ["POST", "PUT", "DELETE", "PATCH"] {
                let reply = try await world.send(method, "/a", fields: fields, body: method == "DELETE" ? nil : "{}")
                #expect(reply.status == status, "\(method): \(reply.status)")
            }
            try await #expect(state(world) == "online")
            try await world.turn("offline")
            let sent = world.site.asked.count
            for method in ["POST", "DELETE"] {
                let reply = try await world.send(method, "/b", fields: fields, body: method == "DELETE" ? nil : "{}")
                #expect((200...299).contains(reply.status))
            }
            try await world.turn("auto")
            try await world.server.outboxIsEmpty(within: .seconds(20))
            #expect(world.site.count("/b", "POST") == 1 && world.site.count("/b", "DELETE") == 1)
            #expect(world.site.asked.count == sent + 2, "nothing else was asked")
            try await #expect(state(world) == "online")
        }
    }

    /// A client polls a URL that has become a page, another asks for a page as JSON: no write waits, and no other read.
    @Test func aPolledPageHoldsNothingBack() async throws {
        let hasMoved = Mutex(false)
        let play: PlayedSite.Play = { asked in
            switch asked.path {
            case "/report" where hasMoved.withLock { $0 }, "/docs": .text("<!doctype html><title>Docs", "Content-Type: text/html")
            case "/report", "/list": .text(#"{"n":1}"#, "Content-Type: application/json", "Cache-Control: max-age=0")
            default: .text("{}", status: asked.method == "POST" ? 201 : 404, "Content-Type: application/json")
            }
        }
        try await PlayedWorld.with(play) { world in
            for path in ["/report", "/list"] {
                _ = try await world.get(path)
                try await world.stored(path)
            }
            hasMoved.withLock { $0 = true }
            try await withThrowingTaskGroup { group in
                group.addTask { for _ in 0..<40 { _ = try await world.get("/report") } }
                group.addTask { for _ in 0..<40 { _ = try await world.get("/docs", ["Accept: application/json"]) } }
                group.addTask {
                    for number in 0..<40 {
                        let reply = try await world.send("POST", "/items", fields: Self.json, body: #"{"n":\#(number)}"#)
                        #expect(reply.status == 201, "write \(number): \(reply.status)")
                        let list = try await world.get("/list")
                        #expect(list["cache-status"]?.contains("captive") != true && list.status == 200)
                    }
                }
                try await group.waitForAll()
            }
            try await #expect(state(world) == "online")
            try await eventually("the report is believed") { try await world.get("/report").text.contains("Docs") }
        }
    }

    /// An API that answers one kind of write with a page: its answer is passed on, and what waited is delivered once.
    @Test(arguments: [404, 405, 401, 200], ["application/json", "text/html"])
    func aWriteThatIsAnsweredWithAPageIsSentOnce(reading: Int, type: String) async throws {
        // A page in answer to both says nothing.
        if reading == 200, type == "text/html" { return }
        let play: PlayedSite.Play = { asked in
            asked.method == "POST" && asked.path == "/hook"
                ? .text("<p>Danke</p>", "Content-Type: text/html")
                : .text(
                    "<p>{}", status: asked.method == "POST" ? 201 : reading, "Content-Type: \(asked.method == "POST" ? Self.type : type)")
        }
        try await PlayedWorld.with(play) { world in
            try await #expect(world.send("POST", "/items", fields: Self.json, body: "{}").status == 201)
            try await world.turn("offline")
            try await #expect(world.send("POST", "/hook", fields: Self.json, body: #"{"n":1}"#).status == 202)
            try await world.turn("auto")
            try await world.server.outboxIsEmpty(within: .seconds(20))
            let reply = try await world.send("POST", "/hook", fields: Self.json, body: #"{"n":2}"#)
            #expect(reply.status == 200 && reply.text == "<p>Danke</p>")
            #expect(world.site.count("/hook", "POST") == 2)
            try await #expect(state(world) == "online")
        }
    }

    /// Where nothing shows whose the page is, the write is not sent again, and no other write waits.
    @Test func aPageThatNothingExplainsIsNotAskedForAgain() async throws {
        let play: PlayedSite.Play = { asked in
            switch (asked.path, asked.method) {
            case ("/hook", _): .text("<p>Danke</p>", "Content-Type: text/html")
            case (_, "POST"): .text("{}", status: 201, "Content-Type: application/json")
            // An application in the browser: every path is its page.
            default: .text("<p>Willkommen</p>", "Content-Type: text/html")
            }
        }
        try await PlayedWorld.with(upstream: ["idempotency": ["max_processing": "1s"]], play) { world in
            try await #expect(world.send("POST", "/items", fields: Self.json, body: "{}").status == 201)
            try await world.turn("offline")
            let queued = try await world.send("POST", "/hook", fields: Self.json, body: #"{"n":1}"#)
            let id = try #require(queued["rockpool-operation"])
            try await world.turn("auto")
            _ = try await world.server.operation(id, reaching: "uncertain")
            for number in 0..<20 {
                try await #expect(world.send("POST", "/items", fields: Self.json, body: #"{"n":\#(number)}"#).status == 201)
            }
            try await #expect(state(world) == "online")
            #expect(world.site.count("/hook", "POST") == 1)
        }
    }

    /// A portal that answers every path alike is seen by a path that no upstream has: no queued write meets an unknown fate in front of it.
    @Test(arguments: [PortalTests.Portal.html, .elsewhere]) func aPortalInFrontOfTheQueueCostsNoWrite(
        _ portal: PortalTests.Portal
    ) async throws {
        let api = PortalledAPI()
        try await PlayedWorld.with({ api.answer($0) }) { world in
            try await #expect(world.send("POST", "/items", fields: Self.json, body: #"{"first":true}"#).status == 201)
            try await world.turn("offline")
            for number in 1...5 {
                try await #expect(world.send("POST", "/items", fields: Self.json, body: #"{"n":\#(number)}"#).status == 202)
            }
            api.stand(portal)
            try await world.turn("auto")
            try await eventually("the portal was asked") { world.site.count("/items", "POST") > 1 }
            try await eventually("the upstream is captive") { try await state(world) == "captive" }
            try await #expect(world.server.operations("uncertain,dead").isEmpty)
            api.stand(nil)
            try await world.server.outboxIsEmpty(within: .seconds(40))
            for number in 1...5 { #expect(api.effects(of: #"{"n":\#(number)}"#) == 1) }
        }
    }

    /// The redirect of a portal reaches no client as the answer to its write, however lately the upstream was heard.
    @Test func aPortalAnswersNoLiveWrite() async throws {
        let api = PortalledAPI()
        try await PlayedWorld.with({ api.answer($0) }) { world in
            for number in 1...4 {
                api.stand(nil)
                try await eventually("reads pass") { try await world.get("/items/\(number)").status == 200 }
                try await eventually("the upstream is heard") { try await state(world) == "online" }
                api.stand(.elsewhere)
                let reply = try await world.send("POST", "/items", fields: Self.json, body: #"{"n":\#(number)}"#)
                #expect(reply.status == 202, "\(reply.status)")
            }
            api.stand(nil)
            try await world.server.outboxIsEmpty(within: .seconds(40))
            for number in 1...4 { #expect(api.effects(of: #"{"n":\#(number)}"#) == 1) }
        }
    }

    /// An API that redirects the answer to a write to another host, as payments do: the client gets it.
    @Test func theUpstreamsOwnRedirectPasses() async throws {
        let play: PlayedSite.Play = { asked in
            asked.method == "POST"
                ? .text("", status: 303, "Location: https://pay.example/session/7")
                : .text("{}", status: 404, "Content-Type: application/json")
        }
        try await PlayedWorld.with(play) { world in
            for _ in 0..<4 {
                let reply = try await world.send("POST", "/checkout", fields: Self.json, body: "{}")
                #expect(reply.status == 303 && reply["location"] == "https://pay.example/session/7")
            }
            #expect(world.site.count("/checkout", "POST") == 4)
            try await #expect(state(world) == "online")
        }
    }

    /// An API that chooses the type by `Accept`, and does not say so: each client gets its own, fresh, stale and away.
    @Test func undeclaredNegotiationGivesEachItsType() async throws {
        let play: PlayedSite.Play = { asked in
            let isXML = asked["accept"]?.contains("xml") ?? false
            return isXML
                ? .text("<n>1</n>", "Content-Type: application/xml", "Cache-Control: max-age=60")
                : .text(#"{"n":1}"#, "Content-Type: application/json", "Cache-Control: max-age=60")
        }
        try await PlayedWorld.with(play) { world in
            let types = ["application/json", "application/xml"]
            func ask(_ note: String) async throws {
                for type in types + types.reversed() {
                    let reply = try await world.get("/a", ["Accept: \(type)"])
                    #expect(reply["content-type"] == type, "\(note): \(type): \(reply["cache-status"] ?? "")")
                }
            }
            for round in 1...3 { try await ask("round \(round)") }
            #expect(world.site.count("/a", "GET") == 2, "each type was fetched once")
            try await #expect(world.get("/a", ["Accept: */*"])["cache-status"]?.contains("hit") == true)
            try await world.turn("offline")
            try await ask("away")
            // Of a type that is not stored, another one is better than none.
            try await #expect(world.get("/a", ["Accept: text/csv"]).status == 200)
        }
    }

    /// A client whose first request fell behind a portal gets the upstream's answer as soon as there is one.
    @Test(arguments: ["*/*", "application/json", "text/html, */*"]) func aPortalThatWasFirstIsForgotten(accept: String) async throws {
        let api = PortalledAPI()
        try await PlayedWorld.with({ api.answer($0) }) { world in
            api.stand(.html)
            try await #expect(world.get("/items/1", ["Accept: \(accept)"]).text.contains("portal"))
            api.stand(nil)
            for _ in 0..<2 { try await #expect(world.get("/items/1", ["Accept: \(accept)"]).text == PortalledAPI.item(1)) }
            try await world.turn("offline")
            try await #expect(world.get("/items/1", ["Accept: \(accept)"]).text == PortalledAPI.item(1))
        }
    }
}

/// An API with items that a portal can replace. It honours idempotency keys.
private final class PortalledAPI: Sendable {
    private struct State {
        var portal: PortalTests.Portal?
        /// Applied bodies, by key.
        var applied: [String: String] = [:]
    }

    private let state = Mutex(State())

    /// The body of an item.
    static func item(_ number: Int) -> String { #"{"id":\#(number),"name":"item \#(number)"}"# }

    /// Puts a portal in place of the API, or removes it.
    func stand(_ portal: PortalTests.Portal?) { state.withLock { $0.portal = portal } }

    /// Returns the number of times that a body took effect.
    func effects(of body: String) -> Int { state.withLock { state in state.applied.values.count { $0 == body } } }

    func answer(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        if let portal = state.withLock({ $0.portal }) { return portal.answer(asked) }
        switch (asked.method, asked.path) {
        case ("GET", "/healthz"): return PlayedSite.Said(status: 204)
        case ("POST", "/items"):
            let key = asked["idempotency-key"] ?? "none"
            state.withLock { $0.applied[key] = asked.body }
            return .text(#"{"ok":true}"#, status: 201, "Content-Type: application/json")
        default: break
        }
        guard let number = asked.path.split(separator: "/").last.flatMap({ Int($0) }) else { return .text("no such thing", status: 404) }
        let fields = ["Content-Type: application/json", "Cache-Control: max-age=1", "ETag: \"item-\(number)\""]
        if asked["if-none-match"] == "\"item-\(number)\"" { return PlayedSite.Said(status: 304, fields: fields) }
        return PlayedSite.Said(fields: fields, body: Array(Self.item(number).utf8))
    }
}
