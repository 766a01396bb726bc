// SIGKILL at any point: no acknowledged write is lost, none is doubled (docs/outbox.md#files, docs/outbox.md#wire-rule).
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct KillTests {
    static let cycles = 10
    static let clients = 4

    /// Expects that every acknowledged write has taken effect exactly once, and every other one at most once.
    private func expectExactlyOnce(_ burst: WriteBurst, _ world: World) {
        var counts: [String: Int] = [:]
        for note in world.api.notes { counts[note.members["title"]?.string ?? "", default: 0] += 1 }
        let lost = burst.acknowledged.filter { counts[$0] == nil }
        #expect(lost.isEmpty, "acknowledged and lost: \(lost.sorted())")
        #expect(counts.filter { $0.value > 1 }.isEmpty)
        #expect(burst.acknowledged.compactMap(WriteBurst.key).allSatisfy { world.api.effects(forKey: $0) == 1 })
        #expect(burst.refused.isEmpty, "\(burst.refused)")
    }

    /// Runs the clients until some writes have been acknowledged, then kills the server during further writes.
    private func writeAndKill(_ burst: WriteBurst, _ world: World) async throws {
        let goal = burst.acknowledged.count + Int.random(in: 1...40)
        try await withThrowingTaskGroup { group in
            for _ in 0..<Self.clients { group.addTask { await burst.write(to: world.server.gateway) } }
            try await eventually("\(goal) acknowledgements") { burst.acknowledged.count >= goal }
            try await world.server.kill()
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    @Test func killedWhileAccepting() async throws {
        try await World.with(seed: []) { world in
            await world.goOffline()
            let burst = WriteBurst()
            for _ in 0..<Self.cycles {
                try await writeAndKill(burst, world)
                try await world.server.start()
            }
            try await #expect(Set(world.server.operations().compactMap { $0["id"]?.string }).count >= min(1000, burst.acknowledged.count))
            try await world.api.restart()
            try await world.server.outboxIsEmpty(within: .seconds(60))
            expectExactlyOnce(burst, world)
        }
    }

    @Test func killedWhileReplaying() async throws {
        try await World.with(seed: []) { world in
            await world.goOffline()
            let burst = WriteBurst()
            for _ in 0..<3 {
                try await writeAndKill(burst, world)
                try await world.server.start()
            }
            world.api.faults.answerDelay = .milliseconds(5)
            try await world.api.restart()
            for _ in 0..<5 {
                let goal = min(world.api.effects() + Int.random(in: 1...8), burst.acknowledged.count)
                try await eventually("\(goal) effects") { world.api.effects() >= goal }
                try await world.server.kill()
                try await world.server.start()
            }
            world.api.faults.answerDelay = nil
            try await world.server.outboxIsEmpty(within: .seconds(60))
            expectExactlyOnce(burst, world)
        }
    }

    @Test func largeBodiesSurviveARestart() async throws {
        try await World.with(seed: []) { world in
            await world.goOffline()
            let text = String(repeating: "tide ", count: 600_000)
            let id = try await world.queued("POST", "/v1/notes", body: #"{"title":"large","body":"\#(text)"}"#)
            try await world.server.kill()
            try await world.server.start()
            try await world.api.restart()
            _ = try await world.server.operation(id, reaching: "delivered")
            #expect(world.api.notes.first?.members["body"]?.string == text)
        }
    }
}
