// Notices to operators and callbacks to clients, of the real binary (docs/guide/operating.md#alarms, docs/outbox.md#callbacks).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3))) struct NoticeTests {
    private static let secret = "a secret of an operator"

    /// Runs `body` with a server whose upstream refuses every write, and a receiver of messages.
    private func with(
        _ rule: JSONValue, status: Int = 204, storage: JSONValue = [:],
        _ body: (ServerProcess, MessageReceiver, Scratch) async throws -> Void
    ) async throws {
        let scratch = try Scratch()
        let receiver = try await MessageReceiver.start(status: status)
        let secret = try scratch.write(Self.secret + "\n", to: "secret")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret)
        // Each refusal has a text of its own, so that they are no mass refusal (docs/outbox.md#mass-refusal).
        let origin = try await RawServer.answering { request in
            if request.hasPrefix("GET") { return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" }
            let text = request.prefix { !$0.isNewline }
            return "HTTP/1.1 422 No\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
        }
        var settings = ServerSettings(upstream: origin.port, storage: storage)
        let webhook: JSONValue = ["webhook": ["url": .string(receiver.url), "secret_file": .string(secret)]]
        settings.notify = [rule["command"] == nil && rule["desktop"] == nil ? webhook.merging(rule) : rule]
        settings.callbacks = ["origins": [.string("http://127.0.0.1:\(receiver.port)")], "secret_file": .string(secret)]
        let server = try await ServerProcess.start(settings)
        try await body(server, receiver, scratch)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
        await receiver.stop()
    }

    /// Queues writes while the network is switched off, and lets them be sent. Returns their ids.
    private func send(_ count: Int, to server: ServerProcess, fields: [String] = []) async throws -> [String] {
        try await #expect(server.change("PUT", "/v1/network", ["mode": "offline", "upstream": "notes"]).status < 300)
        var ids: [String] = []
        for number in 0..<count {
            let reply = try await Curl.send(
                "PUT", "http://\(server.gateway)/v1/notes/\(number)", fields: ["Content-Type: application/json"] + fields, body: "{}")
            ids.append(try #require(reply["rockpool-operation"], "\(reply.heads)"))
        }
        try await #expect(server.change("PUT", "/v1/network", ["mode": "auto", "upstream": "notes"]).status < 300)
        return ids
    }

    @Test func aDeadWriteIsToldWithinTwoSeconds() async throws {
        try await with(["on": ["dead"], "every": "2s"]) { server, receiver, scratch in
            let id = try #require(try await send(1, to: server).first)
            _ = try await server.operation(id, reaching: "dead")
            try await eventually("the notice", within: .seconds(2)) { !receiver.messages.isEmpty }
            let message = try #require(receiver.messages.first)
            let data = message.json?["data"]
            #expect(message.json?["type"] == "rockpool.dead" && data?["upstream"] == "notes" && data?["count"] == 1)
            #expect(data?["operations"] == [.string(id)] && data?["next"]?.string == "rockpool outbox show \(id)")
            let cause = try #require(data?["cause"]?.string)
            #expect(try await server.operation(id, reaching: "dead")["lastError"]?.string == cause, "the same cause everywhere")
            #expect(try await message.isSigned(with: Self.secret, in: scratch), "\(message)")
            let age = Int(Date().timeIntervalSince1970) - (message.head["webhook-timestamp"].flatMap { Int($0) } ?? 0)
            #expect((0...5).contains(age))
            // Further ones within `every` are one notice.
            let more = try await send(12, to: server)
            try await eventually("the folded notice") { receiver.messages.count >= 2 }
            let counts = receiver.messages.dropFirst().compactMap { $0.json?["data"]?["count"]?.integer }
            try await eventually("all of them are told", within: .seconds(10)) {
                receiver.messages.dropFirst().compactMap { $0.json?["data"]?["count"]?.integer }.reduce(0, +) == 12
            }
            #expect(counts.count < 6 && more.count == 12, "\(counts)")
            #expect(receiver.messages.allSatisfy { ($0.json?["data"]?["operations"]?.array?.count ?? 0) <= 10 })
        }
    }

    /// `min_free` is reached, whatever else bounds the cache: its limit, or the size of the disk.
    @Test(arguments: ["100 MB", "1000 TB"]) func aDiskWithoutRoomIsTold(limit: String) async throws {
        try await with(["on": ["storage"]], storage: ["min_free": "900 TB", "cache_limit": .string(limit)]) { _, receiver, _ in
            try await eventually("the notice", within: .seconds(90)) { !receiver.messages.isEmpty }
            let message = try #require(receiver.messages.first?.json)
            #expect(String(decoding: message.serialized(), as: UTF8.self).contains("storage.min_free"), "\(message)")
        }
    }

    @Test func everyPlaceTellsTheSameCauseAndNextStepWithinTwoSeconds() async throws {
        try await with(["on": ["dead"]]) { server, receiver, _ in
            let tail = try await ChildProcess(Binary.path, ["tail", "--state-dir", server.stateDirectory, "--format", "json"])
            let browser = Browser.isInstalled ? try await Browser() : nil
            try await browser?.open("http://\(server.admin)/#token=\(server.token)")
            try await browser?.until("document.querySelector('h1')")
            let id = try #require(try await send(1, to: server).first)
            let cause = try #require(try await server.operation(id, reaching: "dead")["lastError"]?.string)
            let next = "rockpool outbox show \(id)"
            try await eventually("the log", within: .seconds(2)) {
                server.errors.split(separator: "\n").contains { $0.contains(id) && $0.contains(cause) && $0.contains(next) }
            }
            try await eventually("the metric", within: .seconds(2)) {
                try await server.get("/metrics").text.contains(#"rockpool_outbox_operations{state="dead"} 1"#)
            }
            try await eventually("the notice", within: .seconds(2)) {
                receiver.messages.contains { $0.json?["data"]?["cause"]?.string == cause && $0.json?["data"]?["next"]?.string == next }
            }
            try await eventually("the tail", within: .seconds(2)) {
                tail.output.split(separator: "\n").contains { line in
                    let one = try? JSONValue.parse(Array(line.utf8))
                    return one?["verdict"] == "dead" && one?["next"]?.string == next && one?["error"]?.string == cause
                }
            }
            let status = try await server.command("status")
            #expect(status.output.contains(cause) && status.output.contains(next), "\(status.output)")
            try await browser?.until(
                "[...document.querySelectorAll('.banner a')].some((a) => a.getAttribute('href') === '#/outbox/\(id)')", within: .seconds(2))
            let words = try await browser?.evaluate("document.querySelector('.banner-words').innerText").string
            #expect(words?.contains(cause) != false, "\(words ?? "")")
            tail.signal(SIGKILL)
        }
    }

    @Test func aNoticeSurvivesAnOutageAndACrash() async throws {
        try await with(["on": ["dead"]], status: 503) { server, receiver, scratch in
            let id = try #require(try await send(1, to: server).first)
            try await eventually("a first attempt") { !receiver.messages.isEmpty }
            try await server.kill()
            receiver.answer(204)
            try await server.start()
            try await eventually("it is delivered after the crash") {
                try await server.operations("delivered").contains { $0["upstream"]?.string?.hasPrefix("webhook:http") == true }
            }
            #expect(Set(receiver.messages.map(\.id)).count == 1, "one message, however often it was sent")
            #expect(receiver.messages.allSatisfy { $0.json?["data"]?["operations"] == [.string(id)] })
            for message in receiver.messages { #expect(try await message.isSigned(with: Self.secret, in: scratch)) }
            // Another start repeats nothing.
            let count = receiver.messages.count
            #expect(try await server.stop() == .exit(0))
            try await server.start()
            try await Task.sleep(for: .seconds(2))
            #expect(receiver.messages.count == count)
        }
    }

    @Test func aCommandGetsTheNoticeAndTheTestReportsFailures() async throws {
        let scratch = try Scratch()
        let script = try scratch.write(
            "#!/bin/sh\necho \"$ROCKPOOL_SECRET\" > \(scratch.path)/env\ncat > \(scratch.path)/seen\n", to: "alarm")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: script)
        try await with(["command": [.string(script), "one two"]]) { server, _, _ in
            let id = try #require(try await send(1, to: server).first)
            let seen = try await eventualValue("the input", within: .seconds(5)) {
                try? JSONValue.parse(Files.bytes(of: scratch.path + "/seen"))
            }
            #expect(seen["data"]?["operations"] == [.string(id)])
            let good = try await Command.rockpool(["notify", "test", "--state-dir", server.stateDirectory])
            #expect(good.status == 0 && good.output.contains("sent"), "\(good)")
            try Files.write(Array("#!/bin/sh\nexit 3\n".utf8), to: script)
            let bad = try await Command.rockpool(["notify", "test", "--state-dir", server.stateDirectory, "--format", "json"])
            #expect(bad.status == 1 && bad.output.contains("ended with status 3") && bad.errors.contains("1 of 1 failed"), "\(bad)")
        }
    }

    @Test func theTestOfAWebhookWaitsForItsAnswer() async throws {
        try await with([:]) { server, receiver, scratch in
            let good = try await server.change("POST", "/v1/notify/test")
            #expect(good.json?["items"]?.array?.first?["outcome"] == "sent", "\(good.text)")
            #expect(receiver.messages.first?.json?["type"] == "rockpool.test")
            receiver.answer(404)
            let bad = try await server.change("POST", "/v1/notify/test")
            #expect(bad.json?["items"]?.array?.first?["outcome"] == "failed", "\(bad.text)")
            // The death of a message is no event.
            try await Task.sleep(for: .milliseconds(1500))
            #expect(receiver.messages.count == 2)
        }
    }

    @Test func limitsAreToldOnce() async throws {
        try await with(["on": ["oldest_pending", "away"], "oldest_pending": "1s", "away": "1s", "every": "1s"]) { server, receiver, _ in
            try await #expect(server.change("PUT", "/v1/network", ["mode": "offline", "upstream": "notes"]).status < 300)
            _ = try await Curl.send("PUT", "http://\(server.gateway)/v1/notes/1", body: "{}")
            try await eventually("the notice of the old write") {
                receiver.messages.contains { $0.json?["type"] == "rockpool.oldest_pending" }
            }
            try await Task.sleep(for: .seconds(7))
            #expect(receiver.messages.count == 1, "an upstream that is switched off is not away: \(receiver.messages)")
            #expect(receiver.messages[0].json?["data"]?["summary"]?.string?.contains("has waited for") == true)
        }
    }

    @Test func aCallbackPostsTheEndAndStaysOutOfTheRequest() async throws {
        let (api, scratch) = (try await NotesServer.start(seed: [["title": "first"]], settings: NotesSettings()), try Scratch())
        let receiver = try await MessageReceiver.start()
        let secret = try scratch.write("whsec_" + Data("planted".utf8).base64EncodedString(), to: "secret")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret)
        var settings = ServerSettings(upstream: api.port, World.upstream)
        settings.callbacks = ["origins": [.string("http://127.0.0.1:\(receiver.port)")], "secret_file": .string(secret)]
        let server = try await ServerProcess.start(settings)
        try await #expect(server.change("PUT", "/v1/network", ["mode": "offline", "upstream": "notes"]).status < 300)
        let url = "http://\(server.gateway)/v1/notes/1"
        let json = "Content-Type: application/json"
        let reply = try await Curl.send(
            "PATCH", url, fields: [json, "Rockpool-Callback: \(receiver.url)?token=1"], body: #"{"title":"b"}"#)
        let id = try #require(reply["rockpool-operation"], "\(reply.heads)")
        for (field, status) in [("http://127.0.0.1:1/x", 403), ("https://elsewhere.example/x", 403), ("no url", 400), ("file:///x", 400)] {
            let refused = try await Curl.send("PATCH", url, fields: [json, "Rockpool-Callback: \(field)"], body: "{}")
            #expect(refused.status == status, "\(field): \(refused.text)")
        }
        try await #expect(server.change("PUT", "/v1/network", ["mode": "auto", "upstream": "notes"]).status < 300)
        try await eventually("the callback") { !receiver.messages.isEmpty }
        let message = try #require(receiver.messages.first)
        #expect(message.json?["type"] == "rockpool.operation.delivered" && message.json?["data"]?["id"]?.string == id)
        #expect(message.json?["data"]?["result"]?["status"] == 200 && message.id == "\(id)-delivered")
        #expect(message.start.hasPrefix("POST /hook?token=1 "))
        #expect(try await message.isSigned(with: "planted", in: scratch))
        let patches = api.log().filter { $0.method == .patch }
        #expect(patches.count == 1 && patches[0].fields[.rockpoolCallback] == nil, "\(patches)")
        #expect(try await server.stop() == .exit(0), "\(server.errors)")
        try await server.start()
        try await Task.sleep(for: .seconds(2))
        #expect(receiver.messages.count == 1)
        #expect(try await server.stop() == .exit(0), "\(server.errors)")
        await api.stop()
        await receiver.stop()
    }
}
