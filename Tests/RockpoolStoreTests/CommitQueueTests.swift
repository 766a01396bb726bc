// Group commit: one transaction for all waiting jobs; a failure goes to the job that caused it (docs/storage.md#durability).
import Foundation
import GRDB
import RockpoolCore
import Synchronization
import Testing

@testable import RockpoolStore

@Suite struct CommitQueueTests {
    let scratch: Scratch
    let database: StoreDatabase
    let commits = Counter()
    let queue: CommitQueue

    final class Counter: Sendable {
        private let value = Mutex(0)
        var count: Int { value.withLock { $0 } }
        func increment() { value.withLock { $0 += 1 } }
    }

    struct Refused: Error {}

    init() throws {
        scratch = try Scratch()
        let identity = DatabaseIdentity(
            applicationID: 7, migrations: [{ try $0.execute(sql: "CREATE TABLE t (n INTEGER UNIQUE) STRICT") }], synchronous: .full)
        database = try StoreDatabase(path: "\(scratch.path)/t.sqlite", identity: identity, limit: .mb(100))
        let commits = commits
        queue = CommitQueue(pool: database.pool, groupWeight: 1_000_000) { _ in commits.increment() }
    }

    private func numbers() async throws -> [Int] {
        try await database.pool.read { try Int.fetchAll($0, sql: "SELECT n FROM t ORDER BY n") }
    }

    /// Blocks the writer's thread until `count` jobs are queued, so that they form one group.
    private func together(
        _ count: Int, isRepeatable: Bool = false, _ job: @escaping @Sendable (Int, Database) throws -> Void
    ) async -> [Int: any Error] {
        let enqueued = Counter()
        return await withTaskGroup(of: (Int, (any Error)?).self) { tasks in
            let holding = Counter()
            tasks.addTask {
                try? await queue.commit(isRepeatable: true) { _ in
                    holding.increment()
                    while enqueued.count < count { sched_yield() }
                }
                return (-1, nil)
            }
            while holding.count == 0 { await Task.yield() }
            for n in 0..<count {
                tasks.addTask {
                    do {
                        enqueued.increment()
                        try await queue.commit(isRepeatable: isRepeatable) { try job(n, $0) }
                        return (n, nil)
                    } catch {
                        return (n, error)
                    }
                }
            }
            return await tasks.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    /// Where several callers wait at a time, a group waits for as many as the last one had; the jobs of a single caller are groups of one.
    @Test func groupsGather() async throws {
        let count = 40
        await withTaskGroup(of: Void.self) { group in
            for caller in 0..<8 {
                group.addTask {
                    for n in 0..<count {
                        _ = try? await queue.commit { try $0.execute(sql: "INSERT INTO t VALUES (?)", arguments: [caller * 1000 + n]) }
                    }
                }
            }
        }
        #expect(try await numbers().count == 8 * count)
        #expect(commits.count < 3 * count, "\(commits.count)")
        let before = commits.count
        for n in 0..<20 { try await queue.commit { try $0.execute(sql: "INSERT INTO t VALUES (?)", arguments: [100_000 + n]) } }
        #expect(commits.count == before + 20)
    }

    @Test(arguments: [false, true]) func manyJobsShareFewCommits(isRepeatable: Bool) async throws {
        let failures = await together(64, isRepeatable: isRepeatable) { n, db in
            try db.execute(sql: "INSERT INTO t VALUES (?)", arguments: [n])
        }
        #expect(failures.isEmpty)
        #expect(try await numbers() == Array(0..<64))
        #expect(commits.count < 32)
    }

    @Test(arguments: [false, true]) func aFailingJobFailsAlone(isRepeatable: Bool) async throws {
        let failures = await together(16, isRepeatable: isRepeatable) { n, db in
            try db.execute(sql: "INSERT INTO t VALUES (?)", arguments: [n])
            if n == 5 { throw Refused() }
        }
        #expect(Array(failures.keys) == [5])
        #expect(failures[5] is Refused)
        #expect(try await numbers() == Array(0..<16).filter { $0 != 5 })
    }

    @Test(arguments: [false, true]) func aLostTransactionFailsItsGroupAndNobodyIsLeftWaiting(isRepeatable: Bool) async throws {
        let failures = await together(8, isRepeatable: isRepeatable) { n, db in
            try db.execute(sql: "INSERT INTO t VALUES (?)", arguments: [n])
            // SQLite itself rolls back like this on a full disk.
            if n == 3 { try db.execute(sql: "ROLLBACK") }
        }
        let stored = Set(try await numbers())
        #expect(failures[3] != nil)
        // Each job got the correct result: its row is in the table exactly when it did not fail.
        #expect(stored == Set(0..<8).subtracting(failures.keys))
    }

    @Test func whoIsLostToAFullDiskIsToldSo() async throws {
        try await queue.commit { try $0.execute(sql: "CREATE TABLE b (x BLOB) STRICT") }
        let turns = Counter()
        let failures = await together(8) { n, db in
            try db.execute(sql: "PRAGMA max_page_count = 100000; INSERT INTO t VALUES (?)", arguments: [n])
            turns.increment()
            guard turns.count == 4 else { return }
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(pages + 2)")
            try db.execute(sql: "INSERT INTO b VALUES (zeroblob(1000000))")
        }
        #expect(failures.values.compactMap { ($0 as? DatabaseError)?.resultCode } == [.SQLITE_FULL])
        let victims = failures.values.compactMap { $0 as? TransactionLost }
        #expect(!victims.isEmpty && victims.allSatisfy(\.isFull))
        #expect(victims.count + 1 == failures.count)
    }

    @Test func repeatableJobsRunOnceUnlessOneFails() async throws {
        let runs = Counter()
        _ = await together(16, isRepeatable: true) { _, _ in runs.increment() }
        #expect(runs.count == 16)
        let failures = await together(16, isRepeatable: true) { n, _ in
            runs.increment()
            if n == 15 { throw Refused() }
        }
        #expect(Array(failures.keys) == [15] && runs.count > 32)
    }

    /// The journal of a savepoint that changes many pages stays in memory.
    @Test(.enabled(if: StoreDatabase.keepsJournalsInMemory)) func savepointsNeedNoFiles() async throws {
        try await queue.commit { db in
            try db.execute(sql: "CREATE TABLE wide (n INTEGER PRIMARY KEY, x BLOB) STRICT")
            for n in 0..<100 { try db.execute(sql: "INSERT INTO wide VALUES (?, zeroblob(8000))", arguments: [n]) }
        }
        // A longer journal is written to a file, in pieces that SQLite can write.
        #expect(await together(4) { n, db in try db.execute(sql: "UPDATE wide SET x = zeroblob(6000 + ?)", arguments: [n]) }.isEmpty)
        let held = try openTemporaries()
        let failures = await together(4) { n, db in
            try db.execute(sql: "UPDATE wide SET x = zeroblob(7000 + ?) WHERE n < 12", arguments: [n])
            if try openTemporaries() > held { throw Refused() }
        }
        #expect(failures.isEmpty)
    }

    /// The number of temporary files of SQLite that are open.
    private func openTemporaries() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))?.contains("etilqs") == true
        }
    }

    @Test func heavyJobsAreSplitIntoGroups() async throws {
        let enough = 10
        for n in 0..<enough {
            try await queue.commit(weight: 900_000) { try $0.execute(sql: "INSERT INTO t VALUES (?)", arguments: [n]) }
        }
        #expect(try await numbers().count == enough)
        #expect(commits.count == enough)
    }

    @Test func aClosedQueueRefuses() async throws {
        try await queue.commit { try $0.execute(sql: "INSERT INTO t VALUES (1)") }
        await queue.close()
        await #expect(throws: QueueClosed.self) { try await queue.commit { _ in } }
        await #expect(throws: QueueClosed.self) { try await queue.outside { _ in } }
    }

    // MARK: jobs that are held

    private func insert(_ numbers: Range<Int>, mayLinger: Bool) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for n in numbers {
                tasks.addTask {
                    try await queue.commit(isRepeatable: true, mayLinger: mayLinger) { try $0.execute(sql: "INSERT INTO t VALUES (\(n))") }
                }
            }
            try await tasks.waitForAll()
        }
    }

    @Test func jobsThatMayLingerShareACommit() async throws {
        try await insert(0..<20, mayLinger: true)
        try await #expect(numbers() == Array(0..<20))
        #expect(commits.count < 5, "\(commits.count)")
        // Without others, each waits no longer than it may.
        let began = ContinuousClock.now
        try await insert(20..<21, mayLinger: true)
        #expect(ContinuousClock.now - began > .milliseconds(4))
    }

    @Test func aJobThatIsWaitedForTakesTheHeldOnesWithIt() async throws {
        for round in 0..<50 {
            async let held: Void = insert(round * 10..<round * 10 + 5, mayLinger: true)
            try await insert(round * 10 + 5..<round * 10 + 10, mayLinger: false)
            try await held
        }
        try await #expect(numbers() == Array(0..<500))
    }

    @Test func whatIsHeldComesBeforeTheWriterIsUsedOtherwise() async throws {
        for round in 0..<50 {
            let taken = Counter()
            async let held: Void = queue.commit(mayLinger: true) { db in
                taken.increment()
                try db.execute(sql: "INSERT INTO t VALUES (\(round))")
            }
            while queue.waited(until: .now) == .zero, taken.count == 0 { await Task.yield() }
            let count = try await queue.outside { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") }
            #expect(count == round + 1)
            try await held
        }
    }

    @Test func heldJobsAreCommittedBeforeTheQueueCloses() async throws {
        async let held: Void = queue.commit(mayLinger: true) { try $0.execute(sql: "INSERT INTO t VALUES (1)") }
        while queue.waited(until: .now) == .zero, try await numbers().isEmpty { await Task.yield() }
        await queue.close()
        try await held
        try await #expect(numbers() == [1])
        try await Task.sleep(for: .milliseconds(20))
    }
}
