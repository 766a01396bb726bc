// docs/storage.md#ledger: low storage. The disk usage reported by `du` never exceeds the limit, and no request is refused because of it
// (docs/storage.md#limits-and-shares).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized) struct LimitTests {
    /// About ten megabytes of bodies that are stored in files, then of bodies that are stored in rows.
    @Test(arguments: [(100, 60_000), (300, 25_000)]) func aFloodNeverPassesTheCacheLimit(_ count: Int, _ bytes: Int) async throws {
        let limit: Int64 = 2_000_000
        try await World.with(storage: ["cache_limit": "2 MB"]) { world in
            let directory = world.server.cacheDirectory
            let answered = Answered()
            async let samples = {
                var peak: Int64 = 0
                try await eventually("\(count) answers", within: .seconds(180), pace: .milliseconds(2)) {
                    // The files are measured one after the other: meanwhile one may be deleted and another may grow.
                    peak = max(peak, (0..<3).map { _ in Files.allocatedBytes(of: directory) }.min() ?? 0)
                    return answered.count == count
                }
                return peak
            }()
            for first in stride(from: 0, to: count, by: 4) {
                try await withThrowingTaskGroup { group in
                    for size in (first..<first + 4).map({ bytes + $0 * 100 }) {
                        group.addTask {
                            let reply = try await world.send("GET", "/v1/assets/\(size)")
                            #expect(reply.status == 200 && reply.body.count == size)
                            answered.add()
                        }
                    }
                    try await group.waitForAll()
                }
            }
            let peak = try await samples
            #expect(peak > 1_000_000 && peak <= limit, "du saw \(peak)")
            let stats = try #require(try await world.server.get("/v1/stats").json?["cache"])
            #expect(stats["limitBytes"]?.integer == limit && (stats["evictions"]?.integer ?? 0) > 50)
            #expect((stats["bytes"]?.integer ?? .max) <= limit)
            #expect((stats["entries"]?.integer ?? 0) >= 3)
            let latest = try await world.send("GET", "/v1/assets/\(bytes + (count - 1) * 100)")
            #expect(latest["cache-status"]?.hasPrefix("rockpool; hit") == true, "\(latest["cache-status"] ?? "none")")
        }
    }

    @Test func whatIsLargerThanTheCacheStreamsThrough() async throws {
        try await World.with(storage: ["cache_limit": "2 MB"]) { world in
            for _ in 0..<2 {
                let reply = try await world.send("GET", "/v1/assets/3000000")
                #expect(reply.status == 200 && reply.body.count == 3_000_000)
                #expect(reply["cache-status"]?.contains("hit") == false && reply["cache-status"]?.contains("stored") == false)
            }
        }
    }

    @Test func belowTheFreeDiskFloorNothingIsStored() async throws {
        try await World.with(storage: ["min_free": "1000000 GB"]) { world in
            for _ in 0..<2 {
                let reply = try await world.send("GET", "/v1/assets/1000")
                #expect(reply.status == 200 && reply["cache-status"]?.contains("hit") == false)
                #expect(reply["cache-status"]?.contains("stored") == false, "\(reply["cache-status"] ?? "none")")
            }
        }
    }

    /// `cache_dir` may be deleted at any time by any process.
    @Test func theCacheMayBeDeletedUnderTheServer() async throws {
        try await World.with { world in
            for size in [1000, 100_000] { _ = try await world.send("GET", "/v1/assets/\(size)") }
            try await #expect(Command.run("/bin/rm", ["-rf", world.server.cacheDirectory]).status == 0)
            for size in [1000, 100_000, 200_000] {
                let reply = try await world.send("GET", "/v1/assets/\(size)")
                #expect(reply.status == 200 && reply.body.count == size, "\(size): \(reply.status) \(reply.exit)")
            }
            try await world.server.stop()
            try await world.server.start()
            // Bodies without a database: nothing is stored until they are swept.
            try await eventually("a hit") {
                try await world.send("GET", "/v1/assets/1000")["cache-status"]?.hasPrefix("rockpool; hit") == true
            }
        }
    }

    @Test func aFullOutboxRefusesAndKeepsItsWord() async throws {
        try await World.with(seed: [], storage: ["data_limit": "8 MB", "principal_share": "100%"]) { world in
            await world.goOffline()
            var accepted: [String] = []
            var refusal: Curl?
            for n in 0..<60 where refusal == nil {
                let body = #"{"title":"n\#(n)","body":"\#(String(repeating: "x", count: 300_000))"}"#
                let reply = try await world.send("POST", "/v1/notes", fields: ["Content-Type: application/json"], body: body)
                if reply.status == 202 { accepted.append("n\(n)") } else { refusal = reply }
                #expect(Files.allocatedBytes(of: world.server.stateDirectory) <= 8_000_000)
            }
            expectProblem(try #require(refusal), "outbox-full", 507)
            #expect(accepted.count > 10)
            try await #expect(world.server.operations().count == accepted.count)
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            #expect(world.api.notes.compactMap { $0.members["title"]?.string }.sorted() == accepted.sorted())
        }
    }
}

/// A counter shared between tasks.
private final class Answered: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock { $0 } }
    func add() { value.withLock { $0 += 1 } }
}
