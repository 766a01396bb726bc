// docs/outbox.md#files: a queued body that has changed on the disk is never sent as if it were whole, or empty; docs/storage.md#scrub.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct DamagedBodyTests {
    enum Damage: String, CaseIterable { case flippedFirst, flippedLast, truncated, emptied, removed }

    private static let size = 1_500_000

    private func damage(_ path: String, _ damage: Damage) throws {
        guard damage != .removed else { return try FileManager.default.removeItem(atPath: path) }
        let file = try #require(FileHandle(forUpdatingAtPath: path))
        defer { try? file.close() }
        switch damage {
        case .truncated: try file.truncate(atOffset: UInt64(Self.size - 1))
        case .emptied: try file.truncate(atOffset: 0)
        case .flippedFirst, .flippedLast, .removed:
            try file.seek(toOffset: damage == .flippedFirst ? 0 : UInt64(Self.size - 1))
            try file.write(contentsOf: Data([UInt8(ascii: "#")]))
        }
    }

    @Test(arguments: Damage.allCases) func nothingOfItIsTakenForTheWhole(_ damage: Damage) async throws {
        try await PlayedWorld.with({ _ in .text("", status: 204) }) { world in
            let server = world.server
            let body = "\(server.scratch.path)/body.txt"
            try Files.write(Array(repeating: UInt8(ascii: "a"), count: Self.size), to: body)
            try await world.turn("offline")
            let put = ["--data-binary", "@\(body)"]
            let reply = try await world.send("PUT", "/files/a", fields: ["Content-Type: text/plain"], options: put)
            let id = try #require(reply["rockpool-operation"], "\(reply.text)")
            let other = try await world.send("PUT", "/files/b", fields: ["Content-Type: text/plain"], body: "small")
            try #require(other.status == 202)
            try await server.stop()
            let blobs = "\(server.scratch.path)/state/blobs"
            let name = try #require(try FileManager.default.contentsOfDirectory(atPath: blobs).first { $0.count == 64 })
            try self.damage("\(blobs)/\(name)", damage)
            let stopped = try await server.command("doctor")
            #expect(stopped.status == 1 && stopped.output.contains(name) && stopped.output.contains(id), "\(stopped.output)")

            try await server.start()
            let isVisible = damage != .flippedFirst && damage != .flippedLast
            let status = try await server.get("/v1/status").json
            #expect((status?["damaged"]?.array?.first?["body"]?.string == "blobs/\(name)") == isVisible)
            let running = try await server.command("doctor")
            #expect(running.output.contains(name) == isVisible, "\(running.output)")

            try await world.turn("auto")
            let dead = try await server.operation(id, reaching: "dead")
            #expect(dead["reason"] == "damaged" && dead["lastError"]?.string?.contains(name) == true)
            #expect(dead["waiting"]?.string?.contains("damaged") == true)
            try await eventually("the other has arrived") { world.site.count("/files/b") == 1 }
            // The origin records whole requests only.
            #expect(world.site.count("/files/a") == 0)
            #expect(try await server.get("/v1/status").json?["failed"] == 1)

            // Put back from a backup, it is sent.
            try Files.write(Array(repeating: UInt8(ascii: "a"), count: Self.size), to: "\(blobs)/\(name)")
            try await #expect(server.command("outbox", "retry", id).status == 0)
            try await eventually("it has arrived") { world.site.count("/files/a") == 1 }
            #expect(world.site.asked.last { $0.path == "/files/a" }?.body.count == Self.size)
            try await server.outboxIsEmpty()
        }
    }

    @Test(arguments: [true, false]) func aScrubThatFindsABadBodyOfTheCacheEndsWithOne(isRunning: Bool) async throws {
        let text = String(repeating: "a", count: Self.size)
        try await PlayedWorld.with({ _ in .text(text, "Cache-Control: max-age=600") }) { world in
            let server = world.server
            try await #expect(world.get("/a").status == 200)
            try await world.stored("/a")
            try await #expect(server.command("doctor", "--scrub").status == 0)
            if !isRunning { try await server.stop() }
            let bodies = Files.everything(in: "\(server.cacheDirectory)/bodies")
            let file = try #require(bodies.first { $0.split(separator: "/").last?.count == 64 })
            try damage(file, .flippedLast)
            for arguments in [["--dry-run"], []] {
                let found = try await server.command(["doctor", "--scrub"] + arguments)
                #expect(found.status == 1 && found.output.contains("1 bad"), "\(found.output)\(found.errors)")
            }
            let repaired = try await server.command("doctor", "--scrub")
            #expect(repaired.status == 0, "\(repaired.output)\(repaired.errors)")
            if !isRunning { try await server.start() }
        }
    }
}
