// Random sequences against a model, on the real server: read your writes, monotonic reads, writes follow reads, monotonic writes
// (docs/outbox.md#properties). The generator and the model are Tests/sessions/run, which also repeats one seed.
import Foundation
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(30)), .serialized) struct SessionGuaranteeTests {
    private static let environment = ProcessInfo.processInfo.environment
    /// `ROCKPOOL_SEQUENCES` makes a run longer; `ROCKPOOL_SEED` repeats one.
    private static let count = environment["ROCKPOOL_SEQUENCES"].flatMap { Int($0) } ?? 12
    private static let seed = environment["ROCKPOOL_SEED"].flatMap { UInt64($0) } ?? .random(in: 0...UInt64(UInt32.max))
    private static let program =
        URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path + "/sessions/run"

    private func play(_ arguments: String...) async throws -> Command {
        try await Command.run(
            "/usr/bin/env",
            ["python3", Self.program, "--binary", Binary.path, "--sequences", String(Self.count), "--seed", String(Self.seed)] + arguments,
            within: .seconds(60 + 30 * Self.count))
    }

    /// No conflict, no lost update, and each read that is not marked `Rockpool-Dirty: 1` equals the client's own view.
    @Test func oneClientNeverConflictsWithItself() async throws {
        let run = try await play("--clients", "1")
        #expect(run.status == 0, "ROCKPOOL_SEED=\(Self.seed)\n\(run.output)\(run.errors)")
    }

    @Test func twoClientsLoseNoUpdateWithoutARecordedConflict() async throws {
        let run = try await play("--clients", "2")
        #expect(run.status == 0, "ROCKPOOL_SEED=\(Self.seed)\n\(run.output)\(run.errors)")
    }

    /// Of two kinds of API; `make sessions` has all.
    @Test(arguments: ["etag", "undeclared"]) func theStoriesOfSightHold(_ kind: String) async throws {
        let run = try await play("--sight", kind)
        #expect(run.status == 0, "\(run.output)\(run.errors)")
    }

    /// Without the proxy, generator and model agree with the API itself.
    @Test(arguments: ["1", "2"]) func theModelAgreesWithTheAPI(_ clients: String) async throws {
        let run = try await play("--clients", clients, "--stub")
        #expect(run.status == 0, "ROCKPOOL_SEED=\(Self.seed)\n\(run.output)\(run.errors)")
    }
}
