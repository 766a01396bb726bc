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

        fileprivate var answer: PlayedSite.Said {
            switch self {
            case .html: .text("<!doctype html><title>portal</title>", "Content-Type: text/html")
            case .json: .text(#"{"portal":true}"#, "Content-Type: application/json")
            case .elsewhere: .text("portal", status: 302, "Location: http://login.example/")
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
            api.stand(nil)
            try await world.server.outboxIsEmpty(within: .seconds(40))
            try await read(world)
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
        if let portal = state.withLock({ $0.portal }) { return portal.answer }
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
