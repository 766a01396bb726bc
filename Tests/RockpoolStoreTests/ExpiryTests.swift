// Unproved operations are purged one day after they were refused or parked, with an announcement and a log line; an operation that may
// still be sent or may have taken effect is kept (docs/reference/behaviour.md#retention, `cleanup.unproved_after`).
import Foundation
import GRDB
import RockpoolCore
import Synchronization
import Testing

@testable import RockpoolStore

@Suite struct ExpiryTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private func new(_ id: String, lane: String? = nil, principal: String? = nil, _ share: OutboxShare = .unproved) -> QueuedWriteDraft {
        var new = write(id, lane: lane ?? id, principal: principal)
        new.share = share
        return new
    }

    /// Ends an attempt with a 401, or parks the operation without sending it.
    private func refuse(_ store: DataStore, _ id: String, _ state: OperationState = .dead, status: Int? = 401) async throws {
        #expect(try await store.lease(id: id, now: time.now) != nil)
        _ = try await store.finish(
            id: id, disposition: Disposition(state: state, reason: .auth), result: nil, attempt: AttemptRecord(status: status, sent: .yes),
            now: time.now)
    }

    private func clean(_ store: DataStore, dryRun: Bool = false) async throws -> CleanupReport.Operations {
        let report = await store.cleanup(CleanupOptions(dryRun: dryRun), settings: CleanupSettings(), now: time.now)
        #expect(report.errors.isEmpty, "\(report.errors)")
        return report.operations
    }

    private func present(_ store: DataStore) async throws -> [String] {
        try await store.operations(OperationFilter(states: Set(OperationState.allCases))).items.map(\.id)
    }

    @Test(arguments: [OperationState.dead, .parked]) func theyAreAnnouncedWrittenDownAndGo(_ state: OperationState) async throws {
        let store = try openData(scratch.state, time)
        for (id, share) in [("unproved", OutboxShare.unproved), ("proved", .principal), ("nobody", .nobody)] {
            _ = try await store.append(new(id, principal: share == .nobody ? nil : id, share))
        }
        time.advance(.days(3))
        for id in ["unproved", "proved", "nobody"] { try await refuse(store, id, state) }
        let retention = Retention(CleanupSettings())
        time.advance(TimeSpan.hours(20) - .milliseconds(1))
        #expect(try await clean(store) == .init(purged: 0, kept: 3, waiting: state == .parked ? 3 : 0, warned: 0))
        #expect(try await store.announcedPurges(retention, now: time.now).count == 0)
        time.advance(.milliseconds(1))
        #expect(try await clean(store, dryRun: true).warned == 1)
        #expect(try await clean(store).warned == 1)
        #expect(try await clean(store) == .init(purged: 0, kept: 3, waiting: state == .parked ? 3 : 0, warned: 0))
        let (count, first) = try await store.announcedPurges(retention, now: time.now)
        #expect(count == 1 && first == time.now + .hours(4))
        time.advance(.hours(4))
        #expect(try await clean(store, dryRun: true) == .init(purged: 1, kept: 2, waiting: state == .parked ? 2 : 0, warned: 0))
        #expect(try await clean(store) == .init(purged: 1, kept: 2, waiting: state == .parked ? 2 : 0, warned: 0))
        #expect(try await present(store) == ["proved", "nobody"])
        let text = try String(contentsOfFile: "\(scratch.state)/purged-unproved.jsonl", encoding: .utf8)
        let line = try JSONValue.parse(Array(text.utf8.dropLast()))
        #expect(line["id"] == "unproved" && line["state"]?.string == state.rawValue && line["attemptLog"]?.array?.count == 1)
        #expect(try await store.log().first { $0.event == "purged" }?.detail?.hasPrefix("\(state.rawValue): POST ") == true)
        #expect(try await store.queue.outside { try ShareSums.bytes(on: "*", in: $0) } == 0)
        await store.close()
    }

    @Test func whatMayGoOrMayHaveGoneStays() async throws {
        let store = try openData(scratch.state, time)
        for id in ["pending", "inflight", "uncertain", "conflicted", "lost", "retried"] { _ = try await store.append(new(id)) }
        _ = try await store.lease(id: "inflight", now: time.now)
        for state in [OperationState.uncertain, .conflicted] { try await refuse(store, state.rawValue, state) }
        // A gateway lost the response of the first attempt; the second was refused.
        try await refuse(store, "lost", .pending, status: 502)
        try await refuse(store, "lost")
        try await refuse(store, "retried", .parked)
        time.advance(.hours(23))
        _ = try await store.transition(id: "retried", to: .pending, reason: nil, from: [.parked], now: time.now)
        try await refuse(store, "retried", .parked)
        time.advance(.hours(23))
        #expect(try await clean(store).purged == 0)
        time.advance(.hours(1))
        #expect(try await clean(store).purged == 1)
        #expect(try await present(store) == ["pending", "inflight", "uncertain", "conflicted", "lost"])
        await store.close()
    }

    /// One that waits for a credential blocks its successors: they belong to the same principal and were never sent, so they are purged with
    /// it. A refused one blocks what names it alone.
    @Test func whatIsStuckBehindGoesWithIt() async throws {
        let store = try openData(scratch.state, time)
        for id in ["1", "2", "3"] { _ = try await store.append(new(id, lane: "lane", principal: "eve")) }
        var needing = new("4", principal: "eve")
        needing.dependsOn = ["2"]
        _ = try await store.append(needing)
        _ = try await store.append(new("proved", lane: "lane", principal: "anna", .principal))
        try await refuse(store, "1", .parked)
        time.advance(.hours(23))
        _ = try await store.append(new("late", lane: "lane", principal: "eve"))
        time.advance(.hours(1))
        #expect(try await clean(store).purged == 1, "only 4 goes: the last of the lane has not waited for a day")
        time.advance(.hours(23))
        #expect(try await clean(store, dryRun: true).purged == 4)
        let gone = Mutex<[QueuedWrite]>([])
        let report = await store.cleanup(
            CleanupOptions(), settings: CleanupSettings(), now: time.now, noteGone: { operations in gone.withLock { $0 += operations } })
        #expect(report.operations.purged == 4)
        #expect(gone.withLock { $0.map(\.id) } == ["late", "3", "2", "1"])
        #expect(try await present(store) == ["proved"])
        await store.close()
    }

    @Test func whatAnotherWaitsForStays() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(new("1"))
        var needing = new("2", principal: "anna", .principal)
        needing.dependsOn = ["1"]
        _ = try await store.append(needing)
        try await refuse(store, "1")
        time.advance(.days(2))
        #expect(try await clean(store) == .init(purged: 0, kept: 2, waiting: 1, warned: 0))
        _ = try await store.giveUp(id: "2", reason: .discarded, from: [.pending], withTree: false, now: time.now)
        #expect(try await clean(store).purged == 1)
        await store.close()
    }

    @Test func whoProvesHimselfInTimeKeepsWhatHeWrote() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(new("1", principal: "anna"))
        try await refuse(store, "1", .parked)
        time.advance(.hours(23))
        try await store.noteProof(of: "anna")
        time.advance(.days(400))
        #expect(try await clean(store).purged == 0)
        await store.close()
    }

    @Test func whatIsWrittenDownIsBounded() async throws {
        let store = try openData(scratch.state, time)
        let file = PurgedFile(unprovedIn: store.directory, limit: 100, footprint: store.footprint)
        let before = store.footprint.parts.fixed
        for length in [40, 50, 20, 300, 10] {
            try file.append(Array(repeating: UInt8(ascii: "x"), count: length))
            let size = try #require(FileStatus.of(file.path))
            #expect(size.size <= 100 || size.size < Int64(length) + 3)
            #expect(store.footprint.parts.fixed == before + size.allocated)
        }
        #expect(try String(contentsOfFile: file.path, encoding: .utf8) == "xxxxxxxxxx\n")
        await store.close()
    }
}
