// A lost `install-key`: the owners of queued writes are not known any more, and that is said (docs/storage.md#directories).
import Foundation
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct LostKeyTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private var keyFile: String { "\(scratch.state)/install-key" }

    /// Opens the store and closes it again.
    /// - Returns: the number of writes without an owner that the doctor finds while it is open, and afterwards.
    private func start() async throws -> [Int] {
        let store = try openData(scratch.state, time)
        let running = try await DataStore.writesOfLostOwners(in: scratch.state, isRunning: true)
        await store.close()
        return [running, try await DataStore.writesOfLostOwners(in: scratch.state, isRunning: false)]
    }

    private func queue(_ id: String, principal: String?) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write(id, principal: principal))
        await store.close()
        time.advance(.seconds(1))
    }

    @Test func aNewKeyIsSaidWhileWritesHaveLostTheirOwners() async throws {
        try await queue("1", principal: "ann")
        let former = try String(contentsOfFile: keyFile, encoding: .utf8)
        #expect(try await start() == [0, 0])
        try FileManager.default.removeItem(atPath: keyFile)
        for _ in 0..<2 {
            #expect(try await start() == [1, 1])
            time.advance(.seconds(1))
        }
        try await queue("2", principal: "ben")
        #expect(try await start() == [1, 1], "what was queued since has an owner")
        try former.write(toFile: keyFile, atomically: false, encoding: .utf8)
        #expect(try await start() == [0, 0])
    }

    @Test func writesWithoutAnOwnerLoseNone() async throws {
        try await queue("1", principal: nil)
        try FileManager.default.removeItem(atPath: keyFile)
        #expect(try await start() == [0, 0])
    }
}
