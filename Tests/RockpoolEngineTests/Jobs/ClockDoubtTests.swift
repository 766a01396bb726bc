// No entry is removed because of its age while the clock is in doubt (docs/storage.md#clock).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite struct ClockDoubtTests {
    /// Returns an engine with one entry, and a cleaner that has read the clock.
    private func cleaned(date: @escaping @Sendable () -> String?) async throws -> (ScriptedEngine, Cleaner) {
        let pool = try ScriptedEngine(rule: { _ in
            .ok("pearl", date().map { [.cacheControl: "max-age=60", .date: $0] } ?? [.cacheControl: "max-age=60"])
        })
        _ = await pool.ask(.get, "/v1/notes/1")
        let cleaner = Cleaner(engine: pool.engine)
        #expect(await cleaner.runOnce(CleanupOptions()).removed.entries == 0)
        return (pool, cleaner)
    }

    @Test func whatIsOldByBothClocksGoes() async throws {
        let (pool, cleaner) = try await cleaned { nil }
        pool.clock.advance(by: .days(400))
        let report = await cleaner.runOnce(CleanupOptions())
        #expect(report.removed.entries == 1 && report.notes.isEmpty)
    }

    @Test func afterAJumpAheadNothingGoesUntilAnUpstreamSaysTheSame() async throws {
        let clock = ManualClock()
        let (pool, cleaner) = try await cleaned { HTTPDate.format(clock.now) }
        pool.clock.set(ahead: .days(400))
        for _ in 0..<2 {
            let report = await cleaner.runOnce(CleanupOptions())
            #expect(report.removed.entries == 0 && report.notes.count == 1)
        }
        #expect(pool.engine.cache.pausesExpiry)
        // An upstream with a different time does not end the doubt; one with the same time does.
        _ = await pool.ask(.get, "/v1/notes/2")
        #expect(await cleaner.runOnce(CleanupOptions()).removed.entries == 0)
        clock.advance(by: .days(400))
        _ = await pool.ask(.get, "/v1/notes/3")
        let report = await cleaner.runOnce(CleanupOptions())
        #expect(report.removed.entries >= 1 && report.notes.isEmpty)
        #expect(!pool.engine.cache.pausesExpiry)
    }
}
