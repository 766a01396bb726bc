// What was refused, lost or redirected holds nobody: clients that write to undeclared paths, on the real server (docs/outbox.md#what-holds). The
// generator and the model are Tests/sessions/run, which also repeats one seed.
import Foundation
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(10)), .serialized) struct UndeclaredLivesTests {
    private static let environment = ProcessInfo.processInfo.environment
    /// `ROCKPOOL_SEQUENCES` makes a run longer; `ROCKPOOL_SEED` repeats one.
    private static let count = environment["ROCKPOOL_SEQUENCES"].flatMap { Int($0) } ?? 30
    private static let seed = environment["ROCKPOOL_SEED"].flatMap { UInt64($0) } ?? .random(in: 0...UInt64(UInt32.max))
    private static let program =
        URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path + "/sessions/run"

    private func play(_ kind: String, _ count: Int) async throws -> Command {
        try await Command.run(
            "/usr/bin/env",
            ["python3", Self.program, "--binary", Binary.path, kind, "--sequences", String(count), "--seed", String(Self.seed)],
            within: .seconds(60 + 30 * count))
    }

    /// What was not refused has taken effect once, in the order of each path, within five seconds of the line's return.
    @Test func everythingThatWasNotRefusedArrivesOnceAndInOrder() async throws {
        let run = try await play("--lives", Self.count)
        #expect(run.status == 0, "ROCKPOOL_SEED=\(Self.seed)\n\(run.output)\(run.errors)")
    }

    /// 400, 403, 404, 409, 412, 422, a redirect to a login, a lost answer and a broken connection.
    @Test func oneEndedPostHoldsNoLaterWriteOfAnybody() async throws {
        let run = try await play("--refusals", 1)
        #expect(run.status == 0, "\(run.output)\(run.errors)")
    }
}
