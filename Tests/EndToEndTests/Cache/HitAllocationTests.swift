// The number of allocations of each kind of hit, counted in the release binary by Benchmarks/allocations/run, which has the limits
// (docs/architecture.md#speed).
import Foundation
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct HitAllocationTests {
    private static let tools = ["/usr/bin/python3", "/usr/bin/cc"]

    @Test(
        .enabled(if: tools.allSatisfy { access($0, X_OK) == 0 }, "python3 or a C compiler is missing"),
        .enabled(if: Binary.path.contains("/release/"), "a debug build allocates more"))
    func everyHitIsWithinItsLimit() async throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized.path
        let run = try await Command.run(
            "/usr/bin/env", ["python3", root + "/Benchmarks/allocations/run"], environment: ["ROCKPOOL_BINARY": Binary.path],
            within: .seconds(120))
        #expect(run.status == 0, "\(run.output) \(run.errors)")
        #expect(run.output.contains("| hit | "), "\(run.output)")
    }
}
