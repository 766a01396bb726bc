// Secrets in the queries of queued writes and of copies, and in the fields of writes: sealed on the disk, redacted wherever they are shown, sent as they were
// (docs/security-model.md#credentials-and-secrets).
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct SecretURLTests {
    /// The second name is one of the configuration.
    @Test(arguments: ["token", "ticket"]) func aSecretIsSentAndNeitherShownNorReadableOnTheDisk(name: String) async throws {
        let play: PlayedSite.Play = { asked in .text("", status: asked.method == "PUT" ? 204 : 200) }
        try await PlayedWorld.with(further: ["secrets": ["Ticket"], "log": ["access": "json"]], play) { world in
            let server = world.server
            try await world.turn("offline")
            let target = "/files/a?\(name)=planted-1&q=2"
            let reply = try await world.send("PUT", target, fields: ["Content-Type: text/plain"], body: "x")
            let id = try #require(reply["rockpool-operation"], "\(reply.text)")
            #expect(!reply.text.contains("planted"))
            for path in ["/v1/operations", "/v1/operations/\(id)", "/v1/sync/log", "/v1/requests"] {
                let shown = try await server.get(path)
                #expect(shown.status == 200 && !shown.text.contains("planted"), "\(path): \(shown.text)")
            }
            #expect(try await server.get("/v1/operations/\(id)").json?["url"]?.string?.hasSuffix("?\(name)=REDACTED&q=2") == true)
            for arguments in [["outbox", "ls"], ["outbox", "show", id], ["sync", "log"], ["outbox", "export"]] {
                let shown = try await server.command(arguments)
                #expect(shown.status == 0 && !shown.output.contains("planted"), "\(arguments): \(shown.output)\(shown.errors)")
            }
            let whole = try await server.command("outbox", "export", "--with-secrets")
            #expect(whole.output.contains("planted-1"), "\(whole.errors)")
            #expect(server.output.contains("REDACTED") && !server.output.contains("planted") && !server.errors.contains("planted"))
            // An edit of what is shown keeps the secret.
            let edited = try await server.change("PATCH", "/v1/operations/\(id)", ["url": .string("/files/a?\(name)=REDACTED&q=3")])
            #expect(edited.status == 201 && !edited.text.contains("planted"), "\(edited.text)")

            try await server.stop()
            for file in Files.everything(in: server.stateDirectory) where FileManager.default.contents(atPath: file) != nil {
                let bytes = FileManager.default.contents(atPath: file) ?? Data()
                #expect(bytes.range(of: Data("planted".utf8)) == nil, "\(file)")
            }
            // What was sealed under a name stays readable without it.
            let document = try JSONValue.parse(try Files.bytes(of: server.configurationFile))
            try Files.write(document.merging(["secrets": .null]).serialized(), to: server.configurationFile)
            try await server.start()
            try await world.turn("auto")
            try await server.outboxIsEmpty()
            #expect(world.site.count("/files/a?\(name)=planted-1&q=3") == 1, "\(world.site.asked.map(\.path))")
        }
    }

    /// Fields of a write reach the upstream as they came, and those of its answer the client that repeats its request.
    @Test func secretsOfFieldsAreUsedAndNeitherShownNorReadableOnTheDisk() async throws {
        let given = [
            "X-Auth-Token: planted-2", "X-Api-Key: planted-2", "Set-Cookie: s=planted-2", "Location: /files/a?token=planted-2",
            "Link: </files/b?page=1>; rel=next, </files/c?sig=planted-2>; rel=prev", "Refresh: 5; url=/x?key=planted-2",
        ]
        let play: PlayedSite.Play = { asked in asked.method == "PUT" ? .init(status: 201, fields: given) : .text("") }
        try await PlayedWorld.with(play) { world in
            let server = world.server
            try await world.turn("offline")
            let next = "https://ann:planted-1@a.test/b?q=1&token=planted-1"
            let fields = ["Content-Type: text/plain", "Idempotency-Key: \"one\"", "X-Next: \(next)", "Destination: \(next)"]
            let reply = try await world.send("PUT", "/files/a", fields: fields, body: "x")
            let id = try #require(reply["rockpool-operation"], "\(reply.text)")
            try await expectHidden(id, in: world)
            try await world.turn("auto")
            _ = try await server.operation(id, reaching: "delivered")
            let sent = try #require(world.site.asked.first { $0.method == "PUT" })
            #expect(sent["X-Next"] == next && sent["Destination"] == next)
            try await expectHidden(id, in: world)
            try await server.stop()
            for file in Files.everything(in: server.stateDirectory) {
                let bytes = FileManager.default.contents(atPath: file) ?? Data()
                #expect(bytes.range(of: Data("planted".utf8)) == nil, "\(file)")
            }
            try await server.start()
            let waiting = fields + ["Prefer: respond-async, wait=5"]
            let again = try await world.send("PUT", "/files/a", fields: waiting, body: "x")
            #expect(again.status == 201 && again["x-auth-token"] == "planted-2", "\(again.text)")
            #expect(again["location"]?.hasSuffix("/files/a?token=planted-2") == true)
            #expect(world.site.asked.count { $0.method == "PUT" } == 1)
        }
    }

    /// Nothing that shows an operation shows one of its secrets.
    private func expectHidden(_ id: String, in world: PlayedWorld) async throws {
        let server = world.server
        for path in ["/v1/operations?state=all", "/v1/operations/\(id)", "/v1/sync/log", "/v1/requests"] {
            let shown = try await server.get(path)
            #expect(shown.status == 200 && !shown.text.contains("planted"), "\(path): \(shown.text)")
        }
        let exports = ["jsonl", "curl", "har"].map { ["outbox", "export", "--state", "all", "--format", $0] }
        for arguments in [["outbox", "ls", "--state", "all", "--format", "json"], ["outbox", "show", id]] + exports {
            let shown = try await server.command(arguments)
            #expect(shown.status == 0 && shown.output.contains("files"), "\(arguments): \(shown.errors)")
            #expect(!shown.output.contains("planted"), "\(arguments): \(shown.output)")
        }
        let status = try await world.get("\(QueuedWrite.statusPrefix)\(id)")
        #expect(status.status == 200 && !status.text.contains("planted"), "\(status.text)")
    }

    /// A copy is found, changed and removed by its URL, which nothing shows or keeps readable.
    @Test(arguments: ["token", "ticket"]) func aSecretOfACopyIsNeitherShownNorReadableOnTheDisk(name: String) async throws {
        let play: PlayedSite.Play = { asked in
            .text("content", status: asked.method == "PUT" ? 204 : 200, "Cache-Control: max-age=600")
        }
        try await PlayedWorld.with(further: ["secrets": ["Ticket"], "log": ["access": "json"]], play) { world in
            let (server, target) = (world.server, "/files/a?q=2&\(name)=planted%2F1")
            for _ in 1...2 { try await #expect(world.send("GET", target).status == 200) }
            _ = try await world.send("GET", target.replacing("planted", with: "another"))
            let list = try await server.get("/v1/cache")
            let urls = list.json?["items"]?.array?.compactMap { $0["url"]?.string } ?? []
            #expect(urls.count == 2 && Set(urls).count == 2 && urls.allSatisfy { $0.contains("\(name)=REDACTED~") }, "\(list.text)")
            for arguments in [["cache", "ls"], ["cache", "ls", "--match", "files"], ["storage-cleanup", "--dry-run"]] {
                let shown = try await server.command(arguments)
                #expect(shown.status == 0 && !shown.output.contains("planted"), "\(arguments): \(shown.output)\(shown.errors)")
            }
            try await server.stop()
            for file in Files.everything(in: server.stateDirectory) + Files.everything(in: server.cacheDirectory) {
                let bytes = FileManager.default.contents(atPath: file) ?? Data()
                #expect(bytes.range(of: Data("planted".utf8)) == nil, "\(file)")
            }
            try await server.start()
            // It is found by its URL after a restart, and as it was listed.
            try await #expect(world.send("GET", target)["cache-status"]?.contains("hit") == true)
            let shown = try #require(urls.first { !$0.isEmpty })
            for url in urls { try await #expect(server.command("cache", "pin", url).status == 0) }
            // A beginning and a pattern that hold the secret select as they do with any other parameter.
            let start = world.url(target.replacing("%2F1", with: "%2F1&"))
            _ = try await world.send("GET", target + "&page=2")
            for selector in [["--prefix", start], ["--glob", start + "p*"]] {
                let counted = try await server.command(["cache", "purge", "--dry-run"] + selector)
                #expect(counted.status == 0 && counted.output.contains("1 entry"), "\(selector): \(counted.output)\(counted.errors)")
            }
            // A write makes it old.
            try await #expect(world.send("PUT", target, fields: ["Content-Type: text/plain"], body: "x").status == 204)
            try await #expect(world.send("GET", target)["cache-status"]?.contains("hit") == false)
            let purged = try await server.command("cache", "purge", shown)
            #expect(purged.status == 0 && !purged.output.contains("removed  0"), "\(purged.output)\(purged.errors)")
            let rest = try await server.get("/v1/cache").json?["items"]?.array ?? []
            #expect(!rest.isEmpty && !rest.contains { $0["url"] == .string(shown) }, "\(urls) \(rest)")
        }
    }
}
