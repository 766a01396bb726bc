// Purging operations: after the retention time, with an announcement and a log line, and never while another operation depends on them
// (docs/outbox.md#retention *purged*).
import Foundation
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct PurgeTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private func end(_ store: DataStore, _ id: String, _ state: OperationState) async throws {
        _ = try await store.lease(id: id, now: time.now)
        _ = try await store.finish(
            id: id, disposition: Disposition(state: state), result: nil, attempt: AttemptRecord(sent: .yes), now: time.now)
    }

    private func clean(_ store: DataStore, dryRun: Bool = false) async throws -> CleanupReport.Operations {
        let report = await store.cleanup(CleanupOptions(dryRun: dryRun), settings: CleanupSettings(), now: time.now)
        #expect(report.errors.isEmpty)
        return report.operations
    }

    private func present(_ store: DataStore) async throws -> [String] {
        try await store.operations(OperationFilter(states: Set(OperationState.allCases))).items.map(\.id)
    }

    private var file: String? {
        Scratch.files(under: scratch.state).first { $0.hasSuffix(".jsonl") }
    }

    @Test func eachStateHasItsTime() async throws {
        let store = try openData(scratch.state, time)
        for id in ["delivered", "dead", "cancelled", "superseded", "pending"] { _ = try await store.append(write(id, lane: id)) }
        try await end(store, "delivered", .delivered)
        try await end(store, "dead", .dead)
        for (id, state) in [("cancelled", OperationState.cancelled), ("superseded", .superseded)] {
            _ = try await store.transition(id: id, to: state, reason: nil, from: [.pending], now: time.now)
        }
        time.advance(.days(8))
        #expect(try await clean(store).purged == 1)
        #expect(try await present(store) == ["dead", "cancelled", "superseded", "pending"])
        time.advance(.days(21))
        #expect(try await clean(store).purged == 0)
        time.advance(.days(2))
        #expect(try await clean(store).purged == 3)
        time.advance(.days(4000))
        _ = try await clean(store)
        #expect(try await present(store) == ["pending"])
        let lines = try await store.log().filter { $0.event == "purged" }.compactMap(\.detail)
        #expect(lines.count == 4 && lines.contains("delivered: POST https://api.example.com/v1/notes?a=1 (delivered)"))
        await store.close()
    }

    @Test func whatFailedIsAnnouncedOnceAndWrittenDown() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("dead", body: .inline([0xFF, 0]), fields: [.contentType: "a/b"]))
        try await end(store, "dead", .dead)
        let retention = Retention(failed: .days(30))
        time.advance(.days(24))
        #expect(try await clean(store).warned == 0)
        #expect(try await store.announcedPurges(retention, now: time.now).count == 0)
        time.advance(.days(1))
        #expect(try await clean(store, dryRun: true).warned == 1)
        #expect(try await clean(store).warned == 1)
        #expect(try await clean(store).warned == 0)
        let (count, first) = try await store.announcedPurges(retention, now: time.now)
        #expect(count == 1 && first == time.now + .days(5))
        time.advance(.days(6))
        let before = store.usage().usedBytes
        #expect(try await clean(store, dryRun: true).purged == 1 && file == nil)
        #expect(try await clean(store).purged == 1)
        let path = try #require(file)
        #expect(path.hasSuffix("/purged-202702.jsonl"))
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let line = try JSONValue.parse(Array(text.utf8.dropLast()))
        #expect(text.hasSuffix("\n") && line["id"] == "dead" && line["bodyBase64"] == "/wA=" && line["attemptLog"]?.array?.count == 1)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        #expect(store.usage().usedBytes >= before)
        // Half a line, as a crash leaves it: the next record starts on a new line.
        try Data((text + "{\"id\"").utf8).write(to: URL(fileURLWithPath: path))
        _ = try await store.append(write("again"))
        try await end(store, "again", .dead)
        time.advance(.days(1))
        let torn = PurgedFile(directory: store.directory, month: time.now, footprint: store.footprint)
        try torn.append(Array("{}".utf8))
        #expect(try String(contentsOfFile: path, encoding: .utf8).hasSuffix("{\"id\"\n{}\n"))
        await store.close()
    }

    @Test(arguments: [true, false]) func nothingGoesFromUnderWhatWaits(_ isInLane: Bool) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("dead"))
        _ = try await store.append(write("waiting", lane: isInLane ? "notes" : "else"))
        if !isInLane { try await store.queue.commit { try $0.execute(sql: "INSERT INTO op_dep VALUES (2, 1, 'explicit')") } }
        try await end(store, "dead", .dead)
        time.advance(.days(365))
        #expect(try await clean(store) == .init(purged: 0, kept: 2, waiting: 1, warned: 0))
        _ = try await store.giveUp(id: "waiting", reason: .discarded, from: [.pending], withTree: false, now: time.now)
        #expect(try await clean(store).purged == 1)
        #expect(try await present(store) == ["waiting"])
        await store.close()
    }

    @Test func attemptsAndLogAreBounded() async throws {
        let store = try openData(scratch.state, time, storage(data: .mb(8)))
        _ = try await store.append(write("a"))
        try await store.queue.commit { db in
            for n in 1...500 {
                try db.execute(
                    sql: "INSERT INTO attempt (seq, n, started, ended, evidence, rev) VALUES (1, ?, 0, 0, ?, ?)",
                    arguments: [n, [3, 4, 52, 53].contains(n) ? "maybe" : "no", n / 50])
            }
            for _ in 0..<4000 {
                try db.execute(sql: "INSERT INTO sync_log (at, seq, event) VALUES (?, 1, 'pending')", arguments: [9_000_000_000_000])
            }
        }
        _ = try await clean(store)
        let operation = try #require(try await store.operation(id: "a"))
        let numbers = try await store.attempts(of: operation).map(\.number)
        #expect(numbers == [3, 52] + Array(401...500), "the first attempt of each revision that may have been sent is kept")
        #expect(try await store.attempts(of: operation).first?.isInDoubt == true)
        let lines = try await store.database.pool.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM sync_log") }
        #expect(lines == store.logLimit && store.logLimit == 3125)
        await store.close()
    }

    @Test(arguments: [
        (AttemptRecord(status: 422, sent: .yes), false), (AttemptRecord(status: 500, sent: .yes), true),
        (AttemptRecord(status: 501, sent: .yes), false), (AttemptRecord(status: 502, sent: .yes), true),
        (AttemptRecord(status: 503, sent: .yes), false), (AttemptRecord(status: 505, sent: .yes), false),
        (AttemptRecord(status: 511, sent: .yes), false), (AttemptRecord(error: "x", sent: .maybe), true),
        (AttemptRecord(error: "x", sent: .yes), true), (AttemptRecord(error: "x", sent: .no), false),
    ])
    func doubtIsTheSameInCodeAndInTheDatabase(_ attempt: AttemptRecord, _ isInDoubt: Bool) async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("a"))
        let leased = try #require(try await store.lease(id: "a", now: time.now))
        #expect(try await store.attempts(of: leased).map(\.isInDoubt) == [false], "it is being sent")
        let operation = try await store.finish(
            id: "a", disposition: Disposition(state: .pending, nextAttemptAt: time.now), result: nil, attempt: attempt, now: time.now)
        #expect(try await store.attempts(of: operation).map(\.isInDoubt) == [isInDoubt])
        #expect((operation.lostAt != nil) == isInDoubt)
        await store.close()
    }
}
