// docs/outbox.md#telemetry: telemetry waits in queues of its own, is answered as its receiver does, and leaves at its limits alone.
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct TelemetryTests {
    private static func routes(_ more: JSONValue = [:]) -> JSONValue {
        let route: JSONValue = ["match": "POST /v1/**", "kind": "telemetry"]
        return ["routes": [route.merging(more)]]
    }

    /// Posts numbered spans on one connection until it is lost.
    /// - Returns: the replies to those that were acknowledged.
    @discardableResult
    private static func post(
        _ numbers: some Sequence<Int>, to world: PlayedWorld, padding: Int = 0, type: String = "application/json"
    ) async throws -> [Int: (status: Int, body: String, head: MessageHead)] {
        let connection = try await RawConnection.open(world.server.gateway)
        var replies: [Int: (status: Int, body: String, head: MessageHead)] = [:]
        for number in numbers {
            let body = #"{"n":\#(number),"p":"\#(String(repeating: "x", count: padding))"}"#
            let head = "POST /v1/traces HTTP/1.1\r\nHost: \(world.server.gateway)\r\nContent-Type: \(type)\r\n"
            let length = "Content-Length: \(body.utf8.count)\r\n\r\n"
            do {
                try await connection.send(head + length + body)
                let (answer, text) = try await connection.response()
                replies[number] = (answer.status, text, answer)
            } catch { break }
        }
        await connection.close()
        return replies
    }

    private static func number(_ asked: PlayedSite.Asked) -> Int? {
        asked.method == "POST" && asked.path == "/v1/traces"
            ? (try? JSONValue.parse(Array(asked.body.utf8)))?["n"]?.integer.map { Int($0) } : nil
    }

    private static func queue(_ world: PlayedWorld) async throws -> JSONValue? {
        try await world.server.get("/v1/stats").json?["outbox"]?["telemetry"]?.array?.first
    }

    @Test func aThousandWaitAcrossAKillAndArriveButTheRefusedOne() async throws {
        let play: PlayedSite.Play = { asked in
            guard let number = Self.number(asked) else { return .text("other") }
            if number == 17 { return .text("bad span", status: 400) }
            return .text(#"{"partialSuccess":{},"kind":"mine"}"#, "Content-Type: application/json")
        }
        try await PlayedWorld.with(upstream: Self.routes(), play) { world in
            let first = try await Self.post([0], to: world)
            #expect(first[0]?.status == 200)
            try await world.turn("offline")
            let start = ContinuousClock.now
            var acknowledged: Set<Int> = []
            let killed = Task { try await Self.post(1...600, to: world) }
            try await eventually("some wait") { try await Self.queue(world)?["waiting"]?.integer ?? 0 >= 200 }
            try await world.server.kill()
            for (number, reply) in try await killed.value {
                #expect(reply.status == 200 && reply.body == #"{"partialSuccess":{},"kind":"mine"}"#, "as the receiver answers")
                #expect(reply.head["rockpool-operation"] != nil && reply.head["content-type"] == "application/json")
                acknowledged.insert(number)
            }
            #expect(acknowledged.count >= 200)
            try await world.server.start()
            try await world.turn("offline")
            let rest = try await Self.post((1...1000).filter { !acknowledged.contains($0) }, to: world)
            #expect(rest.count == 1000 - acknowledged.count && rest.values.allSatisfy { $0.status == 200 })
            #expect(ContinuousClock.now - start < .seconds(90))
            try await world.turn("auto")
            try await eventually("all have arrived", within: .seconds(90)) {
                Set(world.site.asked.compactMap(Self.number)).count == 1001
            }
            try await eventually("one is left") { try await world.server.operations("pending,inflight,uncertain").isEmpty }
            // The oldest first, a bounded number at once.
            var seen: Set<Int> = []
            let arrived = world.site.asked.compactMap(Self.number).filter { seen.insert($0).inserted && $0 > 600 }
            for (place, number) in arrived.enumerated() { #expect(abs(601 + place - number) <= 64) }
            let queue = try await Self.queue(world)
            #expect(queue?["waiting"]?.integer == 1 && queue?["refused"]?.integer == 1, "\(queue ?? .null)")
            #expect(queue?["dropped"]?["age"]?.integer == 0 && queue?["dropped"]?["bytes"]?.integer == 0)
            let dead = try await world.server.operations("dead")
            #expect(dead.count == 1 && dead.first?["lastError"]?.string != nil)
        }
    }

    @Test func theOldestLeavesAtTheLimitAndIsCounted() async throws {
        let play: PlayedSite.Play = { asked in
            asked.path == "/notes/1" ? .text("{}", "Content-Type: application/json") : .text("", status: 204)
        }
        try await PlayedWorld.with(upstream: Self.routes(["limit": "30 kB"]), play) { world in
            _ = try await Self.post([100], to: world)
            try await world.turn("offline")
            let other = try await world.send("PUT", "/notes/1", fields: ["Content-Type: application/json"], body: #"{"a":1}"#)
            #expect(other.status == 202)
            try await Self.post([101], to: world, padding: 1000)
            let each = Int(try #require(try await Self.queue(world)?["bytes"]?.integer))
            let fitting = 30_000 / each
            try await Self.post(102...(100 + fitting), to: world, padding: 1000)
            let full = try await Self.queue(world)
            #expect(full?["dropped"]?["bytes"]?.integer == 0 && full?["waiting"]?.integer == Int64(fitting), "\(full ?? .null)")
            let replies = try await Self.post((101 + fitting)...(110 + fitting), to: world, padding: 1000)
            #expect(replies.count == 10 && replies.values.allSatisfy { $0.status == 204 })
            let queue = try await Self.queue(world)
            #expect(queue?["dropped"]?["bytes"]?.integer == 10 && queue?["waiting"]?.integer == Int64(fitting), "\(queue ?? .null)")
            let text = try await world.server.command("stats")
            #expect(text.output.contains("TELEMETRY") && text.output.contains("POST /v1/**"), "\(text.output)")
            let metrics = try await world.server.get("/metrics").text
            #expect(metrics.contains(#"rockpool_telemetry_dropped_total{"#) && metrics.contains("rockpool_telemetry_waiting{"))
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            let arrived = world.site.asked.compactMap(Self.number)
            #expect(Set(arrived) == Set([100] + Array(111...(110 + fitting))), "the newest")
            #expect(world.site.count("/notes/1", "PUT") == 1)
        }
    }

    @Test func whatIsTooOldIsNotSentAndIsCounted() async throws {
        try await PlayedWorld.with(upstream: Self.routes(["keep": "2s"]), { _ in .text("", status: 204) }) { world in
            try await world.turn("offline")
            let replies = try await Self.post(1...20, to: world, type: "application/x-protobuf")
            #expect(
                replies.values.allSatisfy { $0.status == 200 && $0.body.isEmpty && $0.head["content-type"] == "application/x-protobuf" })
            try await eventually("all are dropped") { try await Self.queue(world)?["dropped"]?["age"]?.integer == 20 }
            #expect(try await Self.queue(world)?["waiting"]?.integer == 0)
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            #expect(world.site.asked.compactMap(Self.number).isEmpty)
        }
    }

    @Test func aLostAnswerIsSentAgainAndNoReadIsOlderForIt() async throws {
        let lost = Mutex<Set<Int>>([])
        let play: PlayedSite.Play = { asked in
            guard let number = Self.number(asked) else { return .text("page", "Cache-Control: max-age=600") }
            return lost.withLock { $0.insert(number).inserted } ? PlayedSite.Said(wire: [], closes: true) : .text("", status: 204)
        }
        try await PlayedWorld.with(upstream: Self.routes(), play) { world in
            _ = try await world.get("/v1")
            try await world.stored("/v1")
            // A live one whose answer is lost is queued, and answered.
            let live = try await Self.post([1], to: world)
            #expect([200, 204].contains(live[1]?.status ?? 0))
            try await world.server.outboxIsEmpty()
            try await world.turn("offline")
            try await Self.post(2...10, to: world)
            let page = try await world.get("/v1")
            #expect(page.status == 200 && page["rockpool-dirty"] == nil && page["rockpool-pending"] == nil && page["age"] != nil)
            try await world.turn("auto")
            try await world.server.outboxIsEmpty(within: .seconds(60))
            let arrived = world.site.asked.compactMap(Self.number)
            #expect((1...10).allSatisfy { number in arrived.count { $0 == number } >= 2 })
        }
    }

    @Test func whatOneSenderWroteArrivesInHisOrder() async throws {
        let play: PlayedSite.Play = { _ in .text(#"{"event_id":"$a"}"#, "Content-Type: application/json") }
        let upstream: JSONValue = ["routes": [["match": "PUT /rooms/**", "order": "sender"]]]
        try await PlayedWorld.with(upstream: upstream, play) { world in
            try await world.turn("offline")
            for number in 1...25 {
                let path = "/rooms/\(number % 3)/send/m.room.message/t\(number)"
                let reply = try await world.send("PUT", path, fields: ["Content-Type: application/json"], body: #"{"body":"\#(number)"}"#)
                try #require(reply.status == 202 || reply.status == 200 || reply.status == 201, "\(reply.text)")
            }
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            let arrived = world.site.asked.filter { $0.method == "PUT" }.compactMap {
                $0.path.split(separator: "/").last.map { String($0) }
            }
            #expect(arrived == (1...25).map { "t\($0)" })
        }
    }
}
