// docs/outbox.md#mass-refusal: a server that comes back broken costs the queue a few writes, which a person takes back together.
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct MassRefusalTests {
    private static let json = ["Content-Type: application/json"]
    private static let count = 60

    /// An upstream that answers `broken` to writes until a moment after the first one. It keeps the effects in their order.
    private final class Backend: Sendable {
        private struct State {
            var brokenSince: ContinuousClock.Instant?
            var isHealthy = false
            var effects: [(path: String, body: String)] = []
            var keys: [String: [String]] = [:]
        }

        private let state = Mutex(State())
        let broken: PlayedSite.Said
        let span: Duration

        init(_ broken: PlayedSite.Said, for span: Duration) { (self.broken, self.span) = (broken, span) }

        var effects: [(path: String, body: String)] { state.withLock(\.effects) }
        func keys(of body: String) -> [String] { state.withLock { $0.keys[body] ?? [] } }

        func play(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
            guard asked.method != "GET", asked.method != "HEAD" else { return .text("") }
            return state.withLock { state in
                let now = ContinuousClock.now
                state.keys[asked.body, default: []].append(asked["idempotency-key"] ?? "none")
                if state.brokenSince == nil { state.brokenSince = now }
                if let since = state.brokenSince, now - since < span { return broken }
                state.effects.append((asked.path, asked.body))
                return .text("{}", status: 201, "Content-Type: application/json")
            }
        }
    }

    private static func queue(in world: PlayedWorld) async throws {
        try await world.turn("offline")
        for number in 1...count {
            // Every third write goes to one path, the others to paths of their own.
            let path = number.isMultiple(of: 3) ? "/log" : "/things/\(number)"
            let reply = try await world.send("POST", path, fields: json, body: #"{"n":\#(number)}"#)
            try #require(reply.status == 202, "\(reply.text)")
        }
    }

    @Test(arguments: ["404", "405", "403", "500", "reset", "302"]) func fewWritesAreLostAndTheRestArrives(_ kind: String) async throws {
        let broken: PlayedSite.Said =
            switch kind {
            case "reset": PlayedSite.Said(wire: [], closes: true)
            case "302": .text("", status: 302, "Location: /wartung")
            default: .text("starting", status: Int(kind) ?? 500)
            }
        let backend = Backend(broken, for: .seconds(6))
        try await PlayedWorld.with({ backend.play($0) }) { world in
            try await Self.queue(in: world)
            try await world.turn("auto")
            try await eventually("the queue pauses", within: .seconds(6)) {
                try await world.server.operations("pending").contains { $0["waiting"]?.string?.hasPrefix("paused: mass-refusal") == true }
            }
            try await eventually("the rest has arrived", within: .seconds(25)) { backend.effects.count >= Self.count - 4 }
            try await eventually("nothing waits") { try await world.server.operations("pending,inflight").isEmpty }
            let lost = try await world.server.operations("dead,uncertain,conflicted")
            #expect((3...4).contains(lost.count), "\(lost.map { $0["lastError"] })")
            #expect(backend.effects.count == Self.count - lost.count && Set(backend.effects.map(\.body)).count == backend.effects.count)
            let log = backend.effects.filter { $0.path == "/log" }.compactMap { Int($0.body.dropFirst(5).dropLast()) }
            #expect(log == log.sorted())
            guard ["404", "405", "403"].contains(kind) else { return }
            let retry = try await world.server.command("outbox", "retry", "--reason", "rejected", "--since", "10m")
            #expect(retry.status == 0 && retry.output.split(separator: "\n").count == lost.count, "\(retry.output) \(retry.errors)")
            try await eventually("everything has arrived") { backend.effects.count == Self.count }
            try await world.server.outboxIsEmpty()
            #expect(Set(backend.effects.map(\.body)).count == Self.count)
            // A server that stores refusals under a key would refuse the old one again.
            for id in lost.compactMap({ $0["id"]?.string }) {
                let body = try #require(try await world.server.get("/v1/operations/\(id)").json?["body"])
                let keys = backend.keys(of: String(decoding: body.serialized(), as: UTF8.self))
                #expect(Set(keys).count == 2, "\(keys)")
            }
        }
    }

    @Test func aLiveWriteOrAPersonEndsThePause() async throws {
        let isBroken = Mutex(true)
        try await PlayedWorld.with({ asked in
            asked.method == "POST" && isBroken.withLock(\.self) ? .text("no", status: 404) : .text("{}", status: 201)
        }) { world in
            for way in ["live", "flush"] {
                isBroken.withLock { $0 = true }
                try await world.turn("offline")
                for number in 1...10 {
                    _ = try await world.send("POST", "/\(way)/\(number)", fields: Self.json, body: #"{"n":"\#(way)\#(number)"}"#)
                }
                try await world.turn("auto")
                // The third test is 21 seconds away.
                try await eventually("five are dead", within: .seconds(15)) { try await world.server.operations("dead").count == 5 }
                isBroken.withLock { $0 = false }
                if way == "live" {
                    try await #expect(world.send("POST", "/other", fields: Self.json, body: "{}").status == 201)
                } else {
                    try await #expect(world.server.command("outbox", "flush").status == 0)
                }
                try await eventually("the rest is sent", within: .seconds(5)) { try await world.server.operations("pending").isEmpty }
                try await #expect(world.server.command("outbox", "discard", "--state", "dead", "--yes").status == 0)
            }
        }
    }

    @Test func retryRefusesWhatItDoesNotKnow() async throws {
        try await PlayedWorld.with({ _ in .text("") }) { world in
            for query in ["reason=none", "since=soon", "reason=", "upstream=notes", "since=10m&since=5m"] {
                try await #expect(world.server.change("POST", "/v1/operations/retry?\(query)").status == 400, "\(query)")
            }
            try await #expect(world.server.change("POST", "/v1/operations/retry?since=2026-01-01T00:00:00Z").status == 200)
            try await #expect(world.server.command("outbox", "retry", "--reason", "none").status != 0)
            try await #expect(world.server.command("outbox", "retry", "--since", "soon").status != 0)
            let nothing = try await world.server.command("outbox", "retry", "--since", "1h")
            #expect(nothing.status == 0 && nothing.output.contains("nothing to retry"))
        }
    }
}
