// Sites that report to a collector through their outboxes (docs/fleet.md#sites).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3))) struct SiteReportTests {
    private func settings(_ url: String, site: String = "shop-1", secret: String, every: String = "1s") -> ServerSettings {
        var settings = ServerSettings()
        settings.fleet = [
            "report": ["url": .string(url), "site": .string(site), "secret_file": .string(secret), "every": .string(every)]
        ]
        return settings
    }

    @Test func aSiteThatFallsSilentIsToldAndItsReturnToo() async throws {
        let scratch = try Scratch()
        let alarm = try scratch.write("#!/bin/sh\ncat >> \(scratch.path)/told\necho >> \(scratch.path)/told\n", to: "alarm")
        try Files.setMode(0o700, of: alarm)
        let collector = try await CollectorProcess.start(["--silent-after", "4s", "--alarm", alarm])
        let site = try await ServerProcess.start(settings(collector.url, secret: try await collector.add("shop-1")))
        try await eventually("a report") { try await collector.sites().first?["report"]?["state"] == "synced" }
        let row = try #require(try await collector.sites().first)
        #expect(row["site"] == "shop-1" && row["silent"] == false && row["report"]?["pending"] == 0, "\(row)")
        #expect(row["report"]?["version"]?.string?.isEmpty == false)
        let shown = try await collector.status("--check")
        #expect(shown.status == 0 && shown.output.contains("shop-1") && shown.output.contains("synced"), "\(shown)")
        try await site.kill()
        try await eventually("silence", within: .seconds(20)) { try await collector.sites().first?["silent"] == true }
        let silent = try await collector.status("--check")
        #expect(silent.status == 1 && silent.output.contains("silent"), "\(silent)")
        try await eventually("the alarm") { (try? Files.text(of: scratch.path + "/told"))?.contains("rockpool.silent") == true }
        #expect(collector.errors.contains("shop-1 has not reported since"), "\(collector.errors)")
        try await site.start()
        try await eventually("its end") { (try? Files.text(of: scratch.path + "/told"))?.contains("rockpool.heard") == true }
        // One that never reports is silent too, and the records survive a restart.
        _ = try await collector.add("shop-2")
        #expect(try await site.stop() == .exit(0), "\(site.errors)")
        #expect(try await collector.stop() == .exit(0), "\(collector.errors)")
        try await collector.start()
        let sites = try await collector.sites()
        #expect(sites.map { $0["site"]?.string } == ["shop-1", "shop-2"] && sites[0]["report"]?["site"] == "shop-1", "\(sites)")
        try await eventually("the other one", within: .seconds(20)) { try await collector.sites().last?["silent"] == true }
        try await collector.stop()
    }

    @Test func oneReportWaitsWhileTheCollectorIsAway() async throws {
        let collector = try await CollectorProcess.start()
        let secret = try await collector.add("shop-1")
        try await collector.stop()
        let site = try await ServerProcess.start(settings(collector.url, secret: secret))
        try await eventually("a waiting report") { try await site.operations().count == 1 }
        let first = try #require(try await site.operations().first?["id"]?.string)
        try await eventually("a newer one in its place", within: .seconds(30)) {
            let waiting = try await site.operations()
            return !waiting.isEmpty && waiting.allSatisfy { $0["id"]?.string != first }
        }
        for _ in 0..<5 {
            // One may be in an attempt while the next one is queued.
            let waiting = try await site.operations()
            #expect((1...2).contains(waiting.count), "\(waiting)")
            try await Task.sleep(for: .seconds(1))
        }
        #expect(try await site.get("/v1/status").json?["state"] == "pending")
        // What waits is the newest, and survives a crash.
        try await site.kill()
        try await collector.start()
        try site.configure(settings(collector.url, secret: secret, every: "1h"))
        try await site.start()
        try await eventually("the report", within: .seconds(60)) { try await collector.sites().first?["report"]?["site"] == "shop-1" }
        #expect(try await collector.sites().first?["report"]?["pending"] == 0, "its own messages do not count")
        #expect(try await site.stop() == .exit(0), "\(site.errors)")
        try await collector.stop()
    }

    @Test func reportsOfOthersAndCopiesAreNotTaken() async throws {
        let collector = try await CollectorProcess.start()
        let secret = try await collector.add("shop-1")
        _ = try await collector.add("shop-2")
        // What the site sends is caught by a receiver, and posted by hand.
        let receiver = try await MessageReceiver.start()
        let site = try await ServerProcess.start(settings(receiver.url, secret: secret))
        try await eventually("two reports", within: .seconds(30)) { receiver.messages.count >= 2 }
        try await site.stop()
        let messages = receiver.messages
        func post(_ message: MessageReceiver.Message, body: String? = nil) async throws -> Int {
            let fields = ["webhook-id", "webhook-timestamp", "webhook-signature"].map { "\($0): \(message.head[$0] ?? "")" }
            return try await Curl.send(
                "POST", collector.url, fields: fields + ["Content-Type: application/json", "Expect:"], body: body ?? message.body
            ).status
        }
        let (first, last) = (try #require(messages.first), try #require(messages.last))
        #expect(try await post(last, body: last.body.replacing("shop-1", with: "shop-2")) == 401, "signed by another site")
        #expect(try await post(last, body: last.body.replacing("shop-1", with: "../secrets/shop-1")) == 401)
        #expect(try await post(last, body: last.body + " ") == 401)
        #expect(try await post(last, body: "[]") == 400)
        #expect(try await post(last, body: "{\"data\":{\"site\":\"shop-1\",\"x\":\"\(String(repeating: "x", count: 70_000))\"}}") == 413)
        #expect(try await collector.sites().allSatisfy { $0["report"] == .null })
        #expect(try await post(last) == 204)
        let kept = try await collector.sites().first
        #expect(kept?["report"]?["site"] == "shop-1")
        #expect(try await post(first) == 204, "an older one is delivered for its sender")
        #expect(try await collector.sites().first?["sentAt"] == kept?["sentAt"])
        // The list is for those with the token; the port has nothing else.
        for path in ["/v1/sites", "/v1/fleet/status", "/v1/status"] {
            #expect(try await Curl.send("GET", "http://\(collector.address)\(path)").status == 401, "\(path)")
        }
        #expect(try await Curl.send("GET", "http://\(collector.address)/healthz").status == 204)
        // A removed secret ends the site at once.
        try FileManager.default.removeItem(atPath: collector.directory + "/secrets/shop-1")
        #expect(try await post(last) == 401)
        #expect(try await collector.sites().map { $0["site"]?.string } == ["shop-2"])
        try await collector.stop()
        await receiver.stop()
    }

    /// Signs a report as a site does, and posts it.
    private static let posting = """
        import base64, hashlib, hmac, sys, time, urllib.error, urllib.request
        url, file, body = sys.argv[1:4]
        secret = open(file).read().split()[0]
        key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
        now = str(int(time.time()))
        code = base64.b64encode(hmac.new(key, f"m{now}.{now}.{body}".encode(), hashlib.sha256).digest()).decode()
        fields = {"webhook-id": "m" + now, "webhook-timestamp": now, "webhook-signature": "v1," + code, "Content-Type": "application/json"}
        try:
            print(urllib.request.urlopen(urllib.request.Request(url, body.encode(), fields)).status)
        except urllib.error.HTTPError as error:
            print(error.code)
        """

    @Test func aReportOfAnotherFormIsRefusedAndSpoilsNoList() async throws {
        let collector = try await CollectorProcess.start()
        let secrets = [try await collector.add("shop-1"), try await collector.add("shop-2")]
        func post(_ site: Int, _ member: String) async throws -> String {
            let body = "{\"data\":{\"site\":\"shop-\(site)\",\(member)}}"
            let run = try await Command.run("/usr/bin/env", ["python3", "-c", Self.posting, collector.url, secrets[site - 1], body])
            return run.output.filter { !$0.isNewline }
        }
        #expect(try await post(1, "\"pending\": 3, \"state\": \"pending\"") == "204")
        for member in ["\"pending\": 1e999", "\"state\": {}", "\"storage\": 7", "\"oldestPendingSeconds\": 1e999"] {
            #expect(try await post(2, member) == "400", "\(member)")
        }
        // As a version kept it that did not look.
        try await collector.stop()
        let kept =
            "{\"site\":\"shop-2\",\"receivedAt\":\"2026-01-01T00:00:00Z\",\"sentAt\":\"2026-01-01T00:00:00Z\",\"id\":\"m\",\"report\":{\"pending\":1e999,\"state\":\"synced\"}}"
        try Files.write(Array(kept.utf8), to: collector.directory + "/sites/shop-2.json")
        try await collector.start()
        let shown = try await collector.status()
        #expect(shown.status == 0 && shown.output.contains("shop-1") && shown.output.contains("shop-2"), "\(shown)")
        #expect(try await collector.sites().map { $0["report"]?["pending"] } == [3, .null])
        try await collector.stop()
    }

    @Test func aCollectorForOthersNamesThem() async throws {
        let scratch = try Scratch()
        for options in [["--listen", "0.0.0.0:7640"], ["--silent-after", "soon"], ["--allow", "everyone"], ["--alarm", "mail"]] {
            let ended = try await Command.rockpool(["fleet", "collect", "--state-dir", scratch.path + "/office"] + options)
            #expect(ended.status == 64, "\(options): \(ended)")
        }
        for name in ["../x", ".x", ""] {
            #expect(try await Command.rockpool(["fleet", "add", name, "--state-dir", scratch.path + "/office"]).status == 1)
        }
        #expect(!FileManager.default.fileExists(atPath: scratch.path + "/x"))
    }
}
