// The limit for one client's open operations in the outbox: exact to the byte, also after a restart, and released when they end
// (docs/reference/behaviour.md#shares *queue shares*).
import Foundation
import GRDB
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct ShareTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// Opens a store with 80 000 bytes for each share.
    private func opened(_ directory: String? = nil) throws -> DataStore {
        // Of this limit operations can take 8 000 000 bytes.
        var settings = storage(data: ByteCount(13_218_364))
        (settings.principalSharePercent, settings.unprovedSharePercent) = (1, 1)
        return try openData(directory ?? scratch.state, time, settings)
    }

    private func new(
        _ id: String, _ length: Int = 0, _ principal: String? = "anna", _ share: OutboxShare? = .principal,
        _ change: (inout QueuedWriteDraft) -> Void = { _ in }
    ) -> QueuedWriteDraft {
        var new = write(id, body: length == 0 ? .none : .inline(bytes(length)), lane: "lane \(id)", principal: principal)
        new.share = share
        change(&new)
        return new
    }

    private func sums(_ store: DataStore) async throws -> [String: Int64] {
        try await store.queue.outside { db in
            try Row.fetchAll(db, sql: "SELECT account, bytes FROM share WHERE account NOT LIKE '@%'").reduce(into: [:]) { sums, row in
                var columns = RowReader(row)
                let account: String = try columns.next()
                sums[account] = try columns.next(Int64.self)
            }
        }
    }

    private func end(_ store: DataStore, _ id: String, _ state: OperationState) async throws {
        _ = try await store.lease(id: id, now: time.now)
        _ = try await store.finish(
            id: id, disposition: Disposition(state: state), result: nil, attempt: AttemptRecord(status: 401, sent: .yes), now: time.now)
    }

    @Test(arguments: OutboxShare.allCases) func aShareIsTakenToTheLastByteAndNoFurther(_ share: OutboxShare) async throws {
        let store = try opened()
        let principal = share == .nobody ? nil : "anna"
        _ = try await store.append(new("0", 0, principal, share))
        let account = ShareSums.account(share, of: principal)
        let each = try #require(try await sums(store)[account])
        let rest = 80_000 - Int(each) * 3 - 40_000
        _ = try await store.append(new("1", 40_000, principal, share))
        await #expect(throws: DataStoreError.shareUsedUp(share)) { try await store.append(new("2", rest + 1, principal, share)) }
        #expect(try await store.counts() == [.pending: 2], "the rejected write leaves no row")
        _ = try await store.append(new("2", rest, principal, share))
        #expect(try await sums(store) == [account: 80_000])
        await #expect(throws: DataStoreError.shareUsedUp(share)) { try await store.append(new("3", 0, principal, share)) }
        _ = try await store.append(new("a", 100_000, principal, nil))
        await store.close()
    }

    /// What one principal may take is there for it, whatever another one has taken, also with the smallest limit.
    @Test(arguments: [ByteCount.mb(8), .mb(20)]) func twoHalvesFitTogether(limit: ByteCount) async throws {
        let store = try openData(scratch.state, time, storage(data: limit))
        for principal in ["anna", "bert"] {
            var taken = 0
            await #expect(throws: DataStoreError.shareUsedUp(.principal)) {
                while true {
                    _ = try await store.append(new("\(principal) \(taken)", 30_000 + taken * 100, principal))
                    taken += 1
                }
            }
            #expect(taken > 20)
        }
        #expect(store.usableBytes > limit.bytes * 2 / 5 && store.usableBytes < limit.bytes)
        await store.close()
    }

    @Test func oneClientsShareIsNotAnothers() async throws {
        let store = try opened()
        _ = try await store.append(new("1", 70_000))
        await #expect(throws: DataStoreError.shareUsedUp(.principal)) { try await store.append(new("2", 70_000)) }
        _ = try await store.append(new("3", 70_000, "bert"))
        // All unproved operations share one account; those without a principal have a separate one.
        _ = try await store.append(new("4", 40_000, "eve", .unproved))
        await #expect(throws: DataStoreError.shareUsedUp(.unproved)) { try await store.append(new("5", 40_000, "mallory", .unproved)) }
        await #expect(throws: DataStoreError.shareUsedUp(.unproved)) { try await store.append(new("6", 40_000, nil, .unproved)) }
        _ = try await store.append(new("7", 70_000, nil, .nobody))
        #expect(try await store.operations().items.filter(\.isUnproved).map(\.id) == ["4"])
        await store.close()
    }

    @Test func whoeverAsksTogetherIsCountedTogether() async throws {
        let store = try opened()
        let taken = await withTaskGroup(of: Bool.self) { group in
            for n in 0..<32 { group.addTask { (try? await store.append(new("\(n)", 10_000))) != nil } }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(taken == 7)
        #expect(try await store.counts() == [.pending: 7])
        await store.close()
    }

    @Test func whatHasEndedIsNotCounted() async throws {
        let store = try opened()
        for state in [OperationState.delivered, .dead, .parked, .pending] {
            _ = try await store.append(new(state.rawValue, 30_000))
            if state != .pending { try await end(store, state.rawValue, state) }
            if state == .dead {
                await #expect(throws: DataStoreError.shareUsedUp(.principal), "it is kept, and counts") {
                    try await store.append(new("more", 60_000))
                }
                _ = try await store.giveUp(id: "dead", reason: .discarded, from: [.dead], withTree: false, now: time.now)
            }
        }
        let before = try #require(try await sums(store)["anna"])
        #expect(before > 60_000 && before < 70_000)
        _ = try await store.replace(id: "parked", by: new("edited", 100, "anna", nil), from: [.parked], now: time.now)
        let after = try #require(try await sums(store)["anna"])
        #expect(after > 30_000 && after < 40_000)
        await store.close()
    }

    /// Ends of all kinds, changed bodies and bases, a renamed principal: the sums of the triggers are equal to a new count.
    @Test func theSumsAreThoseOfTheRowsAfterARestart() async throws {
        let store = try opened()
        let bench = ConflictBench(time: time)
        _ = try await store.append(bench.put("conflict"))
        _ = try await store.append(new("1", 1000, "token"))
        _ = try await store.append(new("2", 2000, "token", .unproved))
        _ = try await store.append(new("3", 3000, nil, .unproved))
        _ = try await store.append(new("4", 4000, nil, .nobody))
        _ = try await store.append(new("5", 5000, "bert"))
        _ = try? await store.append(new("6", 90_000, "bert"))
        _ = try await store.meet(
            bench.conflict("c", of: "conflict"), decision: .resend(bench.revision(base: Conflict.Side(body: bytes(700)))), now: time.now)
        #expect(try await store.rename(principal: "token", to: "anna") == 2)
        try await end(store, "5", .delivered)
        let counted = try await sums(store)
        #expect(Set(counted.keys) == ["", "*", "anna"])
        let crashed = try scratch.copy(scratch.state, to: "crashed")
        await store.close()
        for directory in [scratch.state, crashed] {
            let again = try opened(directory)
            #expect(try await sums(again) == counted)
            await #expect(throws: DataStoreError.shareUsedUp(.principal)) { try await again.append(new("7", 79_000)) }
            await again.close()
        }
    }

    @Test func aBodyInAFileIsCountedAndLeavesNothingWhenItIsRefused() async throws {
        let store = try opened()
        let writer = try await store.blobWriter(expectedLength: nil)
        try await writer.append(ByteBuffer(bytes: bytes(1_200_000)))
        let body = try await writer.finish()
        let refused = new("1") { $0.body = body }
        await #expect(throws: DataStoreError.shareUsedUp(.principal)) { try await store.append(refused) }
        store.discard(body)
        try await store.removeUnnamed([])
        try await store.queue.outside { _ in }
        // Files are deleted on a separate lane.
        let blobs = { Scratch.files(under: "\(self.scratch.state)/blobs") }
        for _ in 0..<200 where !blobs().isEmpty { try await Task.sleep(for: .milliseconds(10)) }
        #expect(blobs().isEmpty && store.usage().reservedBytes == 0)
        await store.close()
    }

    /// A pinned copy of what the client could read counts too, and may be far larger than the client's write.
    @Test func aPinnedCopyIsCounted() async throws {
        let store = try opened()
        let writes = (1...2).map { n in new("\(n)", 10) { $0.base = Conflict.Side(body: bytes(50_000, seed: UInt64(n))) } }
        _ = try await store.append(writes[0])
        await #expect(throws: DataStoreError.shareUsedUp(.principal)) { try await store.append(writes[1]) }
        await store.close()
    }

    /// Dependencies and places of local ids count too, as many as a write has.
    @Test func whatAWriteNeedsIsCounted() async throws {
        let store = try opened()
        let names = (0..<60).map { "n\($0)" }
        for name in names { _ = try await store.append(new(name, 0, "bert")) }
        let before = try await sums(store)
        _ = try await store.append(new("dependant") { $0.dependsOn = names })
        let alone = try #require(try await sums(store)["anna"])
        #expect(alone > Int64(60 * ShareSums.needBytes) && alone < Int64(60 * ShareSums.needBytes) + 2_000)
        var refused = 0
        for n in 0..<30 {
            do { _ = try await store.append(new("more \(n)") { $0.dependsOn = names }) } catch DataStoreError.shareUsedUp { refused += 1 }
        }
        #expect(refused > 0 && refused < 20)
        let local = LocalID.make(now: time.now, random: (1, 2))
        let pointers = (0..<20).map { LocalIDReference(id: local, place: .query(String(repeating: "a", count: 5_000) + "\($0)")) }
        await #expect(throws: DataStoreError.shareUsedUp(.principal)) { try await store.append(new("places") { $0.references = pointers }) }
        let counted = try await sums(store)
        #expect(counted["bert"] == before["bert"])
        await store.close()
        let again = try opened()
        #expect(try await sums(again) == counted)
        _ = try await again.giveUp(id: "dependant", reason: .discarded, from: [.pending], withTree: false, now: time.now)
        #expect(try await sums(again)["anna"] == counted["anna"].map { $0 - alone })
        await again.close()
    }

    // MARK: proofs

    @Test func aProofMovesWhatWasTakenBeforeIt() async throws {
        let store = try opened()
        _ = try await store.append(new("1", 30_000, "anna", .unproved))
        _ = try await store.append(new("2", 30_000, "eve", .unproved))
        try await store.noteProof(of: "anna")
        let counted = try await sums(store)
        #expect(counted["anna"] == counted["*"] && counted.count == 2)
        #expect(try await store.operations().items.map(\.isUnproved) == [false, true])
        _ = try await store.append(new("3", 30_000, "eve", .unproved))
        await store.close()
    }

    @Test func fromTheFirstCredentialOnNobodyIsUnproved() async throws {
        let store = try opened()
        _ = try await store.append(new("1", 30_000, nil, .nobody))
        #expect(!store.takesCredentials("notes"))
        try await store.noteCredentials(at: "others", now: time.now)
        #expect(try await sums(store)["*"] == nil)
        for _ in 0..<2 { try await store.noteCredentials(at: "notes", now: time.now) }
        let counted = try await sums(store)
        #expect(Set(counted.keys) == ["*"])
        await store.close()
        let again = try opened()
        #expect(again.takesCredentials("notes") && again.takesCredentials("others") && !again.takesCredentials("else"))
        #expect(try await sums(again) == counted)
        await again.close()
    }
}
