// `/metrics` of the real binary, checked by Prometheus' own promtool where it is installed (docs/reference/metrics.md).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct MetricsTests {
    private static let promtool = "/usr/bin/promtool"
    private static let hasPromtool = FileManager.default.isExecutableFile(atPath: promtool)
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private func value(_ name: String, in text: String) -> Double? {
        text.split(separator: "\n").first { $0.hasPrefix(name + " ") }.flatMap { Double($0.dropFirst(name.count + 1)) }
    }

    @Test func theFiguresFollowWhatHappens() async throws {
        try await World.with { world in
            for _ in 0..<2 { _ = try await world.send("GET", "/v1/notes/1", fields: ["Cache-Control: max-age=600"]) }
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
            let id = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"b"}"#)
            let waiting = try await world.server.get("/metrics").text
            #expect(value(#"rockpool_outbox_upstream_operations{upstream="notes",state="pending"}"#, in: waiting) == 1)
            #expect(value(#"rockpool_upstream_reachable{upstream="notes"}"#, in: waiting) == 0)
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "auto"]).status < 300)
            _ = try await world.server.operation(id, reaching: "delivered")
            let text = try await world.server.get("/metrics").text
            #expect(text.contains("rockpool_build_info{version=\""))
            #expect(value(#"rockpool_outbox_entered_total{upstream="notes",state="delivered"}"#, in: text) == 1)
            #expect(value(#"rockpool_outbox_attempts_count{upstream="notes"}"#, in: text) == 1)
            #expect(value(#"rockpool_outbox_attempts_sum{upstream="notes"}"#, in: text) == 1)
            let wait = try #require(value(#"rockpool_outbox_wait_seconds_sum{upstream="notes"}"#, in: text))
            let total = try #require(value(#"rockpool_outbox_delivery_seconds_sum{upstream="notes"}"#, in: text))
            #expect(wait > 0 && total >= wait && total < 20)
            #expect(value(#"rockpool_outbox_upstream_operations{upstream="notes",state="pending"}"#, in: text) == 0)
            #expect(try #require(value(#"rockpool_upstream_received_bytes_total{upstream="notes"}"#, in: text)) > 0)
            let miss = try #require(value(#"rockpool_response_bytes_total{verdict="miss"}"#, in: text))
            #expect(miss > 0)
            #expect(try #require(value("process_resident_memory_bytes", in: text)) > 1_000_000)
            #expect(try #require(value("process_cpu_seconds_total", in: text)) > 0)
            let open = try #require(value("process_open_fds", in: text))
            let most = try #require(value("process_max_fds", in: text))
            #expect(open > 5 && open < most)
            let started = try #require(value("process_start_time_seconds", in: text))
            #expect(abs(Date().timeIntervalSince1970 - started) < 60)
            #expect(value("rockpool_config_last_reload_successful", in: text) == 1)
            let reloaded = try #require(value("rockpool_config_last_reload_success_timestamp_seconds", in: text))
            #expect(abs(reloaded - started) < 5)
            let connection = try await RawConnection.open(world.server.proxy)
            try await eventually("the open connection") {
                try await value("rockpool_client_connections", in: world.server.get("/metrics").text) == 1
            }
            await connection.close()
        }
    }

    @Test func aFailedReloadAndTheAuthorityShow() async throws {
        var settings = ServerSettings()
        settings.proxy = ["intercept": ["api.example.com"]]
        let server = try await ServerProcess.start(settings)
        let text = try await server.get("/metrics").text
        let expiry = try #require(value("rockpool_ca_expiry_timestamp_seconds", in: text))
        #expect(expiry > Date().timeIntervalSince1970 + 86_400 * 30)
        try Files.write(Array("nonsense: 1\n".utf8), to: server.configurationFile)
        #expect(try await server.change("POST", "/v1/reload").status == 409)
        let after = try await server.get("/metrics").text
        #expect(value("rockpool_config_last_reload_successful", in: after) == 0)
        let read = "rockpool_config_last_reload_success_timestamp_seconds"
        #expect(value(read, in: after) == value(read, in: text), "the time is that of the configuration in force")
        #expect(try await server.stop() == .exit(0))
    }

    @Test(.enabled(if: hasPromtool, "promtool is not installed (Debian: prometheus)")) func promtoolFindsNothing() async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/notes/1")
            let file = try world.server.scratch.write(try await world.server.get("/metrics").text, to: "metrics")
            let found = try await Command.run("/bin/sh", ["-c", "\(Self.promtool) check metrics < \(file)"])
            #expect(found.status == 0 && found.output.isEmpty && found.errors.isEmpty, "\(found)")
        }
        let rules = Self.root.appending(path: "Config/prometheus-rules.yml").path
        let found = try await Command.run(Self.promtool, ["check", "rules", "--lint-fatal", rules])
        #expect(found.status == 0, "\(found)")
    }
}
