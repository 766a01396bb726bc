// Background work takes short turns while hits are served (docs/storage.md#eviction).
import GRDB
import Glibc
import RockpoolCore
import Synchronization
import Testing

@testable import RockpoolStore

@Suite struct PaceTests {
    let time = ManualTime()

    @Test func turnsAreShortWhileSomethingIsAskedAndForAMomentAfter() async {
        let lookups = Mutex<UInt64>(7)
        let time = time
        let pace = BackgroundThrottle(clock: { time.now }, lookups: { lookups.withLock(\.self) })
        #expect(await pace.next() == .long)
        lookups.withLock { $0 += 1 }
        #expect(await pace.next() == .short)
        time.advance(.milliseconds(199))
        #expect(await pace.next() == .short)
        time.advance(.milliseconds(1))
        #expect(await pace.next() == .long)
        lookups.withLock { $0 += 1 }
        #expect(await pace.next() == .short)
        time.advance(.milliseconds(-50))
        #expect(await pace.next() == .long, "expected a long turn after the clock was set back")
    }

    @Test(arguments: [false, true]) func hitsPassBetweenAFewRows(_ isAsked: Bool) async throws {
        let scratch = try Scratch()
        let store = try openCache(scratch.cache, time, storage(cache: .mb(100)))
        for n in 0..<100 { _ = try await store.put("/\(n)", [1], at: time.now) }
        time.advance(.seconds(1))
        if isAsked { _ = try await store.lookup(key("/50")) }
        let turns = Mutex(0)
        let observer = TurnCounter { turns.withLock { $0 += 1 } }
        store.database.pool.add(transactionObserver: observer, extent: .observerLifetime)
        let removed = try await store.remove(where: .all)
        #expect(removed.entries == 100)
        let turn = isAsked ? BackgroundThrottle.Turn.short.rows(of: store.batchRows) : store.batchRows
        #expect(turn == (isAsked ? 8 : 38))
        // The last turn finds no rows.
        #expect(turns.withLock(\.self) == (100 + turn - 1) / turn + 1)
        await store.close()
    }

    private static let heap = """
        CREATE TABLE heap (x);
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO heap SELECT randomblob(500) FROM n
        """

    @Test func aLongStatementIsWatchedWhileItRuns() async throws {
        let scratch = try Scratch()
        let store = try openCache(scratch.cache, time, storage(cache: .mb(100)))
        let (during, after) = try await store.queue.outside { db in
            try db.execute(sql: Self.heap)
            var calls = 0
            try db.watchingProgress {
                calls += 1
                return true
            } while: {
                try db.execute(sql: "VACUUM")
            }
            let during = calls
            try db.execute(sql: "VACUUM")
            return (during, calls)
        }
        #expect(during > 0 && after == during)
        await store.close()
    }

    @Test(arguments: [true, false]) func aVacuumIsGivenUpForThoseWhoWait(_ anybodyWaits: Bool) async throws {
        let scratch = try Scratch()
        let store = try openCache(scratch.cache, time, storage(cache: .mb(100)))
        try await store.queue.outside { try $0.execute(sql: Self.heap + "; DELETE FROM heap WHERE rowid % 2 = 0") }
        let queue = store.queue
        let looks = Mutex(0)
        // The second call of this closure happens in the middle of the VACUUM statement.
        let pace = BackgroundThrottle(clock: { .init(milliseconds: 0) }) {
            let look = looks.withLock { looks in
                looks += 1
                return looks
            }
            if anybodyWaits, look == 2 {
                Task { try await queue.commit { _ in } }
                while queue.waited(until: .now) == .zero { usleep(100) }
            }
            return UInt64(look)
        }
        let report = try await Compaction(
            database: store.database, queue: queue, footprint: store.footprint, pace: pace, patience: .zero
        ).run(CleanupOptions(vacuum: true), CleanupSettings(), freed: 0)
        #expect(report.ran == !anybodyWaits)
        #expect(report.why == (anybodyWaits ? "asked for, given up for others who waited: in steps" : "asked for"))
        #expect(report.freePages == 0)
        await store.close()
    }
}
