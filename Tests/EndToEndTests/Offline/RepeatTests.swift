// docs/outbox.md#replies, docs/outbox.md#repeats: programs that take 202 for a failure. They get the reply that they know, and what they try
// again arrives once.
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct RepeatTests {
    private static let json = ["Content-Type: application/json"]

    /// The answer of the API to each path, and the status of the reply away.
    private static let answers: [(path: String, answer: PlayedSite.Said, reply: Int)] = [
        ("/nothing", .text("", status: 204), 204), ("/empty", .text(""), 200), ("/created", .text("", status: 201), 201),
        ("/typed", .text("", status: 204, "Content-Type: text/html"), 204),
        ("/item", .text(#"{"id":1}"#, status: 201, "Content-Type: application/json"), 202),
        ("/address", .text("", status: 201, "Location: /address/1"), 202), ("/ok", .text("ok"), 202),
        ("/taken", .text("", status: 202), 202),
        ("/refused", .text("", status: 422), 202),
    ]

    private static func play(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        answers.first { asked.path == $0.path }?.answer ?? .text("", status: 204)
    }

    @Test func theReplyIsTheOneThatTheAPIGives() async throws {
        try await PlayedWorld.with({ Self.play($0) }) { world in
            for (path, answer, _) in Self.answers {
                try await #expect(world.send("POST", path, fields: Self.json, body: "{}").status == answer.status)
            }
            try await world.turn("offline")
            for isAfterRestart in [false, true] {
                if isAfterRestart {
                    try await world.server.stop()
                    try await world.server.start()
                    try await world.turn("offline")
                }
                for (path, _, status) in Self.answers {
                    let reply = try await world.send("POST", path, fields: Self.json, body: #"{"away":\#(isAfterRestart)}"#)
                    #expect(reply.status == status, "\(path): \(reply.status) \(reply.text)")
                    let id = try #require(reply["rockpool-operation"])
                    #expect(reply["rockpool-state"] == "pending")
                    guard status != 202 else { continue }
                    #expect(reply.body.isEmpty && reply["location"] == nil && reply["set-cookie"] == nil)
                    #expect(reply["link"] == #"</.well-known/rockpool/operations/\#(id)>; rel="rockpool-operation""#)
                }
            }
            try await world.turn("auto")
            for (path, _, _) in Self.answers {
                try await eventually("the writes to \(path)") { world.site.count(path) == 3 }
            }
            #expect(world.site.asked.allSatisfy { $0["rockpool-repeat"] == nil && $0["rockpool-operation"] == nil })
        }
    }

    @Test func theConfigurationNamesTheReply() async throws {
        let routes: JSONValue = [
            "routes": [
                ["match": "POST /services/**", "offline_response": ["status": 200, "type": "text/html", "body": "ok"]],
                ["match": "POST /write", "offline_response": ["status": 204]], ["match": "POST /nothing", "offline_response": "accepted"],
            ]
        ]
        try await PlayedWorld.with(upstream: routes, { Self.play($0) }) { world in
            try await #expect(world.send("POST", "/nothing", fields: Self.json, body: "{}").status == 204)
            try await world.turn("offline")
            let slack = try await world.send("POST", "/services/T/B", fields: Self.json, body: #"{"text":"hi"}"#)
            #expect(slack.status == 200 && slack.text == "ok" && slack["content-type"] == "text/html")
            let influx = try await world.send("POST", "/write?db=a", fields: ["Content-Type: text/plain"], body: "m v=1")
            #expect(influx.status == 204 && influx.body.isEmpty)
            try await #expect(world.send("POST", "/nothing", fields: Self.json, body: "{}").status == 202)
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            #expect(world.site.count("/services/T/B") == 1 && world.site.count("/write?db=a") == 1)
        }
    }

    @Test func fiveTriesOfOneWriteArriveOnce() async throws {
        try await PlayedWorld.with({ Self.play($0) }) { world in
            try await world.turn("offline")
            var ids: Set<String> = []
            for n in 1...5 {
                if n == 4 {
                    try await world.server.stop()
                    try await world.server.start()
                    try await world.turn("offline")
                }
                let reply = try await world.send("POST", "/ok", fields: Self.json + ["X-Request-Id: \(n)"], body: #"{"text":"once"}"#)
                #expect(reply.status == 202 && reply["rockpool-repeat"] == (n == 1 ? nil : "1"), "\(n): \(reply.status)")
                ids.insert(try #require(reply["rockpool-operation"]))
            }
            #expect(ids.count == 1)
            let operations = try await world.server.operations()
            #expect(operations.count == 1 && operations[0]["repeats"]?.integer == 4)
            let id = try #require(ids.first)
            let shown = try await world.server.command("outbox", "show", id)
            #expect(shown.output.contains("4, counted as this one"), "\(shown.output)")
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            #expect(world.site.count("/ok") == 1)
        }
    }

    @Test func repeatsThatWereMeantAreSent() async throws {
        try await PlayedWorld.with({ Self.play($0) }) { world in
            try await world.turn("offline")
            for _ in 1...3 { _ = try await world.send("POST", "/ok", fields: Self.json, body: "{}") }
            let id = try #require(try await world.server.operations().first?["id"]?.string)
            let made = try await world.server.command("outbox", "repeat", id)
            #expect(made.status == 0 && made.output.split(separator: "\n").count == 2, "\(made.output) \(made.errors)")
            try await #expect(world.server.operations().map { $0["repeats"]?.integer } == [0, 0, 0])
            let again = try await world.server.command("outbox", "repeat", id)
            #expect(again.status != 0 && again.errors.contains("no repeats"), "\(again.errors)")
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            #expect(world.site.count("/ok") == 3)
        }
    }

    @Test func twoMachinesHaveWritesOfTheirOwn() async throws {
        try await PlayedWorld.with({ Self.play($0) }) { world in
            try await world.turn("offline")
            for address in ["127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2"] {
                let reply = try await world.send("POST", "/ok", fields: Self.json, body: "{}", options: ["--interface", address])
                #expect(reply.status == 202)
            }
            try await #expect(world.server.operations().map { $0["repeats"]?.integer } == [1, 1])
        }
    }

    @Test func eachIsAWriteIfTheQueueSaysSo() async throws {
        try await PlayedWorld.with(upstream: ["queue": ["repeats": "each"]], { Self.play($0) }) { world in
            try await world.turn("offline")
            for _ in 1...3 { _ = try await world.send("POST", "/ok", fields: Self.json, body: "{}") }
            for _ in 1...3 { _ = try await world.send("PUT", "/a", fields: Self.json, body: "{}") }
            try await #expect(world.server.operations().count == 6)
        }
    }
}
