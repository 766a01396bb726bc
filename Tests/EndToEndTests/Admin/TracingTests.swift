// Spans of the real binary, taken by a small collector (docs/guide/operating.md#traces).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct TracingTests {
    private static let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private func spans(_ collector: MessageReceiver) -> [JSONValue] {
        collector.messages.compactMap(\.json).flatMap { $0["resourceSpans"]?.array ?? [] }
            .flatMap { $0["scopeSpans"]?.array ?? [] }.flatMap { $0["spans"]?.array ?? [] }
    }

    private func text(_ span: JSONValue, _ name: String) -> String? {
        span["attributes"]?.array?.first { $0["key"]?.string == name }?["value"]?["stringValue"]?.string
    }

    private func with(_ body: (NotesServer, ServerProcess, MessageReceiver) async throws -> Void) async throws {
        let collector = try await MessageReceiver.start(status: 200)
        let api = try await NotesServer.start(seed: [["title": "first"]], settings: NotesSettings())
        var settings = ServerSettings(upstream: api.port, World.upstream)
        settings.tracing = .string("otlp://127.0.0.1:\(collector.port)")
        let server = try await ServerProcess.start(settings)
        try await body(api, server, collector)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await api.stop()
        await collector.stop()
    }

    @Test func aTraceIsContinuedToTheUpstream() async throws {
        try await with { api, server, collector in
            let fields = ["traceparent: \(Self.parent)", "tracestate: vendor=1", "Authorization: Bearer planted"]
            _ = try await Curl.send("GET", "http://\(server.gateway)/v1/notes/1?token=planted", fields: fields)
            let seen = try #require(api.log().first { $0.target.hasPrefix("/v1/notes/1") })
            let sent = try #require(seen.fields[.traceparent].flatMap { TraceContext($0) })
            #expect(sent.traceID == "0af7651916cd43dd8448eb211c80319c" && sent.spanID != "b7ad6b7169203331" && sent.isSampled)
            #expect(seen.fields[.tracestate] == "vendor=1")
            try await eventually("both spans") { spans(collector).count == 2 }
            let whole = try #require(spans(collector).first { $0["kind"] == 2 }),
                fetch = try #require(spans(collector).first { $0["kind"] == 3 })
            #expect(whole["parentSpanId"] == "b7ad6b7169203331" && whole["traceId"]?.string == sent.traceID)
            #expect(fetch["parentSpanId"]?.string == whole["spanId"]?.string && fetch["spanId"]?.string == sent.spanID)
            #expect(text(whole, "rockpool.verdict") != nil && text(whole, "rockpool.upstream") == "notes")
            #expect(whole["events"]?.array?.compactMap { $0["name"]?.string }.contains("fetched") == true)
            let start = try #require(whole["startTimeUnixNano"]?.string.flatMap { Int64($0) })
            let end = try #require(whole["endTimeUnixNano"]?.string.flatMap { Int64($0) })
            #expect(start <= end)
            let body = collector.messages.map(\.body).joined()
            #expect(body.contains("\"service.name\"") && body.contains("REDACTED") && !body.contains("planted"))
            #expect(
                collector.messages.allSatisfy { $0.start == "POST /v1/traces HTTP/1.1" && $0.head["content-type"] == "application/json" })
        }
    }

    @Test func aTraceBeginsHereAndAnUnrecordedOnePasses() async throws {
        try await with { api, server, collector in
            for _ in 0..<3 { _ = try await Curl.send("GET", "http://\(server.gateway)/v1/notes/1", fields: ["Cache-Control: max-age=600"]) }
            try await eventually("a span of each") { spans(collector).filter { $0["kind"] == 2 }.count == 3 }
            let begun = spans(collector).filter { $0["kind"] == 2 }
            #expect(begun.allSatisfy { $0["parentSpanId"] == nil } && Set(begun.compactMap { $0["traceId"]?.string }).count == 3)
            let quiet = Self.parent.dropLast(2) + "00"
            _ = try await Curl.send("GET", "http://\(server.gateway)/v1/notes/1?quiet", fields: ["traceparent: \(quiet)"])
            #expect(api.log().last { $0.target.hasSuffix("?quiet") }?.fields[.traceparent] == String(quiet))
            let metrics = try await server.get("/metrics").text
            #expect(metrics.contains(#"rockpool_traced_exchanges_total{outcome="sent"} 3"#), "\(spans(collector).count)")
        }
    }

    @Test func anAbsentCollectorHoldsUpNothing() async throws {
        try await with { _, server, collector in
            await collector.stop()
            collector.answer(500)
            let began = ContinuousClock.now
            for _ in 0..<20 { _ = try await Curl.send("GET", "http://\(server.gateway)/v1/notes/1") }
            #expect(ContinuousClock.now - began < .seconds(10))
            try await eventually("they are dropped") {
                let text = try await server.get("/metrics").text
                return text.firstMatch(of: /rockpool_traced_exchanges_total\{outcome="dropped"\} (\d+)/).flatMap { Int($0.1) } ?? 0 >= 20
            }
            #expect(server.errors.contains("spans are dropped"))
            try await #expect(server.get("/v1/status").status == 200)
        }
    }

    @Test func aQueuedWriteKeepsItsTrace() async throws {
        try await with { api, server, collector in
            try await #expect(server.change("PUT", "/v1/network", ["mode": "offline", "upstream": "notes"]).status < 300)
            let reply = try await Curl.send(
                "PATCH", "http://\(server.gateway)/v1/notes/1", fields: ["traceparent: \(Self.parent)", "Content-Type: application/json"],
                body: #"{"title":"b"}"#)
            let id = try #require(reply["rockpool-operation"])
            try await #expect(server.change("PUT", "/v1/network", ["mode": "auto", "upstream": "notes"]).status < 300)
            _ = try await server.operation(id, reaching: "delivered")
            let patch = try #require(api.log().first { $0.method == .patch })
            #expect(patch.fields[.traceparent]?.hasPrefix("00-0af7651916cd43dd8448eb211c80319c-") == true)
            // The exchange, the queueing within it, and the attempt within that, which the upstream's request names.
            try await eventually("its spans") { spans(collector).filter { text($0, "rockpool.operation") == id }.count == 3 }
            let all = spans(collector).filter { text($0, "rockpool.operation") == id }
            let exchange = try #require(all.first { $0["kind"] == 2 }), queued = try #require(all.first { $0["kind"] == 4 })
            let attempt = try #require(all.first { $0["name"] == "PATCH replay" })
            #expect(queued["parentSpanId"]?.string == exchange["spanId"]?.string)
            #expect(attempt["parentSpanId"]?.string == queued["spanId"]?.string)
            #expect(attempt["spanId"]?.string == patch.fields[.traceparent].flatMap { TraceContext($0) }?.spanID)
            #expect(attempt["status"] == [:] && all.allSatisfy { $0["traceId"]?.string == "0af7651916cd43dd8448eb211c80319c" })
        }
    }
}
