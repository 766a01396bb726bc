// How a node takes over what others have written: without their lock, and without a new compilation of its statements
// (docs/fleet.md#transactions).
import GRDB
import GRDBSQLite
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolStore

@Suite(.enabled(if: PostgreSQLServer.programs != nil, "postgresql is not installed"), .serialized, .timeLimit(.minutes(2)))
struct FleetFeedTests: FleetCase {
    let scratch: Scratch
    let time = ManualTime()
    let server: PostgreSQLServer

    init() throws {
        scratch = try Scratch()
        server = try PostgreSQLServer()
    }

    /// How often SQLite has compiled each statement of the writer anew.
    private func compilations(at store: DataStore) async throws -> [String: CInt] {
        try await store.queue.outside { db in
            var (counts, statement): ([String: CInt], OpaquePointer?) = ([:], sqlite3_next_stmt(db.sqliteConnection, nil))
            while let next = statement {
                counts[String(cString: sqlite3_sql(next)), default: 0] += sqlite3_stmt_status(next, SQLITE_STMTSTATUS_REPREPARE, 0)
                statement = sqlite3_next_stmt(db.sqliteConnection, next)
            }
            // SQLite compiles its own `PRAGMA page_count` each time.
            return counts.filter { $0.value > 0 && !$0.key.hasPrefix("PRAGMA") }
        }
    }

    private func exchange(_ numbers: Range<Int>, _ a: DataStore, _ b: DataStore) async throws {
        for number in numbers {
            for (store, other) in [(a, b), (b, a)] {
                let id = "\(number)-\(store === a)"
                _ = try await store.append(write(id, lane: id))
                try await other.catchUp()
                _ = try #require(try await other.lease(id: id, now: time.now))
                try await deliver(id, at: other)
            }
        }
    }

    @Test func noStatementIsCompiledAgainForWhatOthersHaveWritten() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        try await exchange(0..<3, a, b)
        let before = try await compilations(at: b)
        try await exchange(3..<8, a, b)
        let after = try await compilations(at: b)
        #expect(after == before, "\(after.filter { before[$0.key] != $0.value })")
        #expect(try await open(a) == [])
        #expect(try await open(b) == [])
        await a.close()
        await b.close()
    }

    @Test func aNodeThatOnlyReadsDoesNotWaitForTheOneThatWrites() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        _ = try await a.append(write("1"))
        let holds = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted"
        try server.sql("CREATE TABLE ended ()")
        let untilEnded = "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM ended) LOOP PERFORM pg_sleep(0.02); END LOOP; END $$"
        let holder = Task.detached { [server] in
            try server.sql("BEGIN; SELECT pg_advisory_xact_lock(\(SharedSchema.lockKey)); \(untilEnded); COMMIT")
        }
        try await until { (try? server.sql("DO $$ BEGIN ASSERT EXISTS (\(holds)); END $$")) != nil }
        #expect(try await open(b) == ["1"])
        // It is still held: who writes waits.
        try server.sql("DO $$ BEGIN ASSERT EXISTS (\(holds)); END $$")
        async let second = b.append(write("2"))
        try server.sql("INSERT INTO ended DEFAULT VALUES")
        _ = try await second
        try await holder.value
        #expect(try await open(a) == ["1", "2"])
        await a.close()
        await b.close()
    }

    @Test func theTriggersOfTheSchemaGuardWhatANodeWritesItself() async throws {
        let a = try await node("a")
        _ = try await a.append(write("1"))
        await #expect(throws: DatabaseError.self) {
            try await a.queue.commit { try $0.execute(sql: "UPDATE op SET reason = 'none of ours'") }
        }
        let (own, temporary) = try await a.queue.outside { db in
            let guarded = "SELECT name FROM temp.sqlite_master WHERE sql LIKE '%' || ? || '%'"
            return (
                try Set(String.fetchAll(db, sql: "SELECT name FROM main.sqlite_master WHERE type = 'trigger'")),
                try Set(String.fetchAll(db, sql: guarded, arguments: [OwnTriggers.condition]))
            )
        }
        #expect(own == temporary && own.count > 10)
        await a.close()
    }
}
