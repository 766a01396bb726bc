// Group commit with another database, which commits first (docs/fleet.md#transactions).
import Foundation
import GRDB
import RockpoolCore
import Synchronization
import Testing

@testable import RockpoolStore

@Suite struct CommitPartnerTests {
    private struct Away: Error, Equatable {}
    private struct Refused: Error, Equatable {}
    /// The partner has committed, SQLite has not.
    private struct Half: Error, Equatable {}

    /// Notes what it is asked, and fails where it is told to.
    private final class Partner: CommitPartner {
        struct State {
            var calls: [String] = []
            var failsAtBegin = false
            var failsAtPrepare = false
            var isUnknown = false
            var permitsEither = false
            /// A number in the table that it does not permit.
            var refuses: Int?
            /// The transactions that it wants for itself; how many of them are refused; and whether this is one.
            var own = 0
            var refusedOwn = 0
            var isOwn = false
        }

        let state = Mutex(State())
        var calls: [String] { state.withLock(\.calls) }

        private func call(_ name: String, fails: (State) -> Bool = { _ in false }) throws {
            try state.withLock { state in
                state.calls.append(name)
                guard fails(state) else { return }
                throw PartnerAbsence(error: Away(), isUnknown: state.isUnknown, permitsEither: state.permitsEither)
            }
        }

        func begin(in db: Database, isReading: Bool, bodies: [Data]) throws -> Bool {
            try call((isReading ? "read" : "begin") + bodies.map { " \($0.count)" }.joined()) { $0.failsAtBegin }
            return state.withLock { state in
                state.isOwn = state.own > 0
                state.own = max(0, state.own - 1)
                return !state.isOwn
            }
        }
        func prepare(in db: Database) throws {
            try call("prepare") { $0.failsAtPrepare }
            let isRefused = state.withLock { state in
                guard state.isOwn, state.refusedOwn > 0 else { return false }
                (state.refusedOwn, state.own) = (state.refusedOwn - 1, state.own + 1)
                return true
            }
            if isRefused { throw PartnerRefusal(error: Refused()) }
            if let number = state.withLock(\.refuses), try Int.fetchAll(db, sql: "SELECT n FROM t").contains(number) {
                throw PartnerRefusal(error: Refused())
            }
        }
        func abandon() { try? call("abandon") }
        func isHalfCommitted(by failure: any Error) -> any Error { Half() }
        func bringLess(after refusal: PartnerRefusal, in db: Database) throws { try call("less") }
        func ended(in db: Database, isCommitted: Bool) { try? call(isCommitted ? "committed" : "rolled back") }
        func beginAlone(in db: Database) throws { try call("begin alone") }
        func endAlone(in db: Database) throws { try call("end alone") }
    }

    private let scratch: Scratch
    private let database: StoreDatabase
    private let partner = Partner()
    private let queue: CommitQueue

    init() throws {
        scratch = try Scratch()
        let identity = DatabaseIdentity(
            applicationID: 7,
            migrations: [
                {
                    try $0.execute(
                        sql: """
                            CREATE TABLE t (n INTEGER UNIQUE) STRICT;
                            CREATE TABLE u (n INTEGER REFERENCES t (n) DEFERRABLE INITIALLY DEFERRED) STRICT
                            """)
                }
            ], synchronous: .full)
        database = try StoreDatabase(path: "\(scratch.path)/t.sqlite", identity: identity, limit: .mb(100))
        queue = CommitQueue(pool: database.pool, groupWeight: 1_000_000, partner: partner)
    }

    private func insert(_ n: Int, _ scope: CommitScope) async throws {
        try await queue.commit(scope: scope) { try $0.execute(sql: "INSERT INTO t VALUES (?)", arguments: [n]) }
    }

    private func numbers() async throws -> [Int] {
        try await database.pool.read { try Int.fetchAll($0, sql: "SELECT n FROM t ORDER BY n") }
    }

    @Test func thePartnerCommitsBeforeSQLite() async throws {
        try await insert(1, .shared)
        #expect(partner.calls == ["begin", "prepare", "committed"])
        #expect(try await numbers() == [1])
    }

    @Test func thePartnerKnowsTheBodiesOfAGroupBeforeItBegins() async throws {
        try await queue.commit(adding: Data([1, 2, 3])) { try $0.execute(sql: "INSERT INTO t VALUES (1)") }
        #expect(partner.calls == ["begin 3", "prepare", "committed"])
    }

    @Test func rowsOfThisNodeNeedNoPartner() async throws {
        partner.state.withLock { $0.failsAtBegin = true }
        try await insert(1, .own)
        #expect(partner.calls == [])
        #expect(try await numbers() == [1])
    }

    @Test func whatOnlyHasToBeUpToDateReads() async throws {
        try await queue.commit(scope: .feed) { _ in }
        #expect(partner.calls == ["read", "prepare", "committed"])
        partner.state.withLock { ($0.calls, $0.failsAtBegin, $0.permitsEither) = ([], true, true) }
        await #expect(throws: Away.self) { try await queue.commit(scope: .feed) { _ in } }
    }

    @Test func aJobWaitsForTheTransactionsThatThePartnerWantsForItself() async throws {
        partner.state.withLock { $0.own = 2 }
        try await insert(1, .either)
        let turn = ["begin", "prepare", "committed"]
        #expect(partner.calls == turn + turn + turn)
        #expect(try await numbers() == [1])
    }

    @Test(arguments: [true, false]) func whileThePartnerIsAwayOnlyPermittedJobsRun(permitsEither: Bool) async throws {
        partner.state.withLock { ($0.failsAtBegin, $0.permitsEither) = (true, permitsEither) }
        await #expect(throws: Away.self) { try await insert(1, .shared) }
        if permitsEither { try await insert(2, .either) } else { await #expect(throws: Away.self) { try await insert(2, .either) } }
        #expect(try await numbers() == (permitsEither ? [2] : []))
        #expect(partner.calls.contains("begin alone") == permitsEither)
        #expect(!partner.calls.contains("prepare"))
    }

    @Test func aJobRunsAgainAloneWhenThePartnerIsLostBeforeItsCommit() async throws {
        partner.state.withLock { ($0.failsAtPrepare, $0.permitsEither) = (true, true) }
        try await insert(1, .either)
        #expect(try await numbers() == [1])
        #expect(partner.calls == ["begin", "prepare", "abandon", "begin alone", "end alone"])
    }

    @Test func aCommitThatIsNotKnownIsNoAcknowledgement() async throws {
        partner.state.withLock { ($0.failsAtPrepare, $0.isUnknown, $0.permitsEither) = (true, true, true) }
        await #expect(throws: Away.self) { try await insert(1, .either) }
        #expect(try await numbers() == [])
        #expect(partner.calls == ["begin", "prepare", "abandon", "rolled back"])
    }

    @Test func whatThePartnerRefusesFailsAlone() async throws {
        partner.state.withLock { $0.refuses = 3 }
        let outcomes = try await withThrowingTaskGroup(of: (Int, Bool).self) { group in
            // While the writer is busy, the others gather to a group.
            group.addTask {
                try await self.queue.commit(scope: .own) { _ in Thread.sleep(forTimeInterval: 0.2) }
                return (0, true)
            }
            for number in 1...5 {
                group.addTask {
                    do { try await self.insert(number, .shared) } catch is Refused { return (number, false) }
                    return (number, true)
                }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(outcomes == [0: true, 1: true, 2: true, 3: false, 4: true, 5: true])
        #expect(try await numbers() == [1, 2, 4, 5])
    }

    @Test func whatIsRefusedOfThePartnersOwnConcernsNoJob() async throws {
        partner.state.withLock { ($0.own, $0.refusedOwn) = (1, 2) }
        try await insert(1, .shared)
        let refused = ["begin", "prepare", "abandon", "less"]
        #expect(partner.calls == refused + refused + ["begin", "prepare", "committed", "begin", "prepare", "committed"])
        #expect(try await numbers() == [1])
    }

    /// The partner has it: a caller that takes it for refused would ask for it twice.
    @Test func aFailureAfterThePartnersCommitIsToldAsWhatItIs() async throws {
        await #expect(throws: Half.self) {
            try await queue.commit { try $0.execute(sql: "INSERT INTO u VALUES (99)") }
        }
        #expect(partner.calls == ["begin", "prepare", "abandon", "rolled back"])
        // Without the partner it is the error that it is.
        await #expect(throws: DatabaseError.self) {
            try await queue.commit(scope: .own) { try $0.execute(sql: "INSERT INTO u VALUES (99)") }
        }
    }

    @Test func aFailingJobLeavesNothingInEither() async throws {
        try await insert(1, .shared)
        await #expect(throws: DatabaseError.self) { try await insert(1, .shared) }
        #expect(partner.calls == ["begin", "prepare", "committed", "begin", "abandon", "rolled back"])
        #expect(try await numbers() == [1])
    }
}
