// Turns whose holder does the jobs of those that wait.
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolEngine

@Suite struct GatheredTurnsTests {
    private let key = CacheKey(method: "GET", origin: OriginAddress(scheme: .https, host: "api.example"), target: "/v1/notes")
    private let other = CacheKey(method: "GET", origin: OriginAddress(scheme: .https, host: "api.example"), target: "/v1/tags")

    /// Ten thousand writes that are delivered while a list is stored were ten thousand more versions of that list.
    @Test func thoseThatWaitAreDoneTogether() async throws {
        let turns = GatheredTurns<Int>(limit: 64)
        let first = try #require(await turns.enter(0, key: key))
        #expect(first.jobs == [0])
        let groups = await withTaskGroup(of: [Int].self, returning: [[Int]].self) { group in
            for job in 1...100 {
                group.addTask { [key] in
                    guard let mine = await turns.enter(job, key: key) else { return [] }
                    turns.leave(mine, key: key)
                    return mine.jobs
                }
            }
            // Another key is free.
            if let beside = await turns.enter(1, key: other) { turns.leave(beside, key: other) }
            try? await eventually("all wait") { turns.waitingCount(for: key) == 100 }
            turns.leave(first, key: key)
            return await group.reduce(into: [[Int]]()) { groups, jobs in if !jobs.isEmpty { groups.append(jobs) } }
        }
        #expect(groups.map(\.count).sorted() == [36, 64] && Set(groups.flatMap(\.self)) == Set(1...100))
        let last = try #require(await turns.enter(7, key: key))
        #expect(last.jobs == [7])
        turns.leave(last, key: key)
    }
}
