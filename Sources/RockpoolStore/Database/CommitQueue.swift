// Group commit: all queued jobs run in one transaction with one fsync (docs/storage.md#durability).
import Dispatch
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore
import Synchronization

/// The single writer of a database.
///
/// Jobs are queued; a drain on the writer's thread takes the queued jobs, runs each in a savepoint of one transaction, commits once, then
/// resumes every caller. A failing job fails alone; a failing commit fails every job of the group. A group of repeatable jobs runs without
/// savepoints, for which SQLite copies each page that a job changes; if a job fails, the group runs again with them. Jobs that nobody waits for
/// are held until there are some, because each commit costs as much as several of them; where many are waited for, a group is held for a moment
/// until as many have come again.
final class CommitQueue: Sendable {
    private typealias Answer = @Sendable ((any Error)?) -> Void

    private struct Job: Sendable {
        let scope: CommitScope
        /// The name of a body in a file that the job adds.
        let body: Data?
        let isRepeatable: Bool
        /// True if the job may be held for others.
        let mayLinger: Bool
        /// Runs the job; returns its error, if any, and a closure that resumes its caller once the outcome of the transaction is known. A
        /// job that is alone in its transaction runs without a savepoint: SQLite moves a large savepoint journal into a file.
        let run: @Sendable (Database, _ isAlone: Bool) -> (failure: (any Error)?, answer: Answer)
        /// Answers the caller with an error; the job does not run.
        let refuse: Answer
    }

    private struct State {
        var waiting: [(weight: Int64, since: ContinuousClock.Instant, job: Job)] = []
        var drain = Drain.none
        var isClosed = false
        /// The number of jobs in the last group that were waited for.
        var company = 0

        /// True if the jobs that wait may be held until `now` for others.
        func mayHold(at now: ContinuousClock.Instant) -> Bool {
            guard !isClosed, waiting.count < CommitQueue.lingerCount, let first = waiting.first else { return false }
            return now - first.since < .milliseconds(CommitQueue.linger) && waiting.allSatisfy(\.job.mayLinger)
        }
    }

    private enum Drain {
        case none
        /// Jobs are held, and a timer runs.
        case scheduled
        case running
    }

    /// The longest time that a job is held, in milliseconds.
    private static let linger = 5
    /// The longest time in milliseconds that a job waits for others which are likely to follow.
    private static let gathering = 1
    /// The number of jobs in a group from which on as many are expected in the next one.
    private static let manyCount = 8
    /// The number of jobs that are not held any longer.
    private static let lingerCount = 64

    /// Maximum weight of one transaction in bytes, so that many large jobs cannot grow the log without bound.
    let groupWeight: Int64
    private let pool: DatabasePool
    private let state = Mutex(State())
    private let turnCount = Atomic(0)
    /// Called on the writer's thread after every commit, outside any transaction.
    private let afterCommit: @Sendable (Database) -> Void
    /// Where the database is: what is committed elsewhere does not count. Nil for a database that may be lost.
    private let place: DatabasePlace?
    /// The database that commits every shared transaction first; nil without a fleet.
    private let partner: (any CommitPartner)?

    /// - Parameter groupWeight: maximum bytes of one transaction; a larger job runs in a transaction of its own.
    init(
        pool: DatabasePool, groupWeight: Int64, partner: (any CommitPartner)? = nil,
        place: DatabasePlace? = nil,
        afterCommit: @escaping @Sendable (Database) -> Void = { _ in }
    ) {
        self.pool = pool
        self.groupWeight = groupWeight
        self.partner = partner
        self.place = place
        self.afterCommit = afterCommit
    }

    /// The number of turns of the writer that have ended, counted before their callers are resumed.
    var turns: Int { turnCount.load(ordering: .acquiring) }

    /// Runs `body` in a transaction shared with other jobs; returns when the transaction is committed.
    ///
    /// - Parameters:
    ///   - weight: approximate bytes that `body` writes.
    ///   - scope: the databases that must take part. `body` may run twice, the first time without an effect.
    ///   - blob: the name of a body in a file that `body` adds; a partner may have it ahead of the transaction.
    ///   - isRepeatable: true if `body` changes nothing but the database, so that it may be rolled back and run again.
    ///   - mayLinger: true if nobody waits for the end, so that the job may be held for a few milliseconds.
    /// - Throws: the error of `body` (its own changes are rolled back), the error of the commit, or `QueueClosed`.
    func commit<T: Sendable>(
        weight: Int64 = .kib(4), scope: CommitScope = .shared, adding blob: Data? = nil, isRepeatable: Bool = false,
        mayLinger: Bool = false, _ body: @escaping @Sendable (Database) throws -> T
    ) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            submit(weight: weight, scope: scope, adding: blob, isRepeatable: isRepeatable, mayLinger: mayLinger, body) {
                continuation.resume(with: $0)
            }
        }
    }

    /// Runs `body` as `commit` does, for callers without a task.
    /// - Parameter answer: called once with the result of `commit`, on the writer's thread, or before this returns if the queue is closed.
    func submit<T: Sendable>(
        weight: Int64 = .kib(4), scope: CommitScope = .shared, adding blob: Data? = nil, isRepeatable: Bool = false,
        mayLinger: Bool = false, _ body: @escaping @Sendable (Database) throws -> T,
        answer: @escaping @Sendable (Result<T, any Error>) -> Void
    ) {
        let job = Job(
            scope: scope, body: blob, isRepeatable: isRepeatable, mayLinger: mayLinger,
            run: { db, isAlone in
                let result = Result { isAlone ? try body(db) : try Self.inSavepoint(in: db) { try body(db) } }
                return (result.failure, { failure in answer(Self.answer(own: result, group: failure)) })
            }, refuse: { failure in answer(.failure(failure ?? TransactionLost())) })
        enqueue(weight: weight, orElse: { answer(.failure(QueueClosed())) }, job)
    }

    /// Runs `body` on the writer's connection outside any transaction, after the jobs already queued: VACUUM, checkpoints, measuring.
    func outside<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            // Under the lock: no work may reach the connection after the final turn of `close`.
            let isTaken = state.withLock { state in
                if state.isClosed { return false }
                if state.drain == .scheduled { start(&state, isHurried: true) }
                pool.asyncWriteWithoutTransaction { db in
                    let result = Result { try body(db) }
                    self.endTurn(on: db)
                    continuation.resume(with: result)
                }
                return true
            }
            if !isTaken { continuation.resume(throwing: QueueClosed()) }
        }
    }

    /// Returns how long the first queued job has been waiting; zero when the queue is empty.
    func waited(until now: ContinuousClock.Instant) -> Duration { state.withLock { $0.waiting.first.map { now - $0.since } ?? .zero } }

    /// Refuses further jobs; returns when all accepted jobs have been answered.
    func close() async {
        state.withLock { $0.isClosed = true }
        await withCheckedContinuation { continuation in
            pool.asyncWriteWithoutTransaction { db in
                while let group = self.nextGroup() { self.run(group[...], on: db) }
                continuation.resume()
            }
        }
    }

    private func enqueue(weight: Int64, orElse refuse: () -> Void, _ job: Job) {
        let isTaken = state.withLock { state in
            if state.isClosed { return false }
            state.waiting.append((weight, .now, job))
            if state.drain != .running { start(&state) }
            return true
        }
        if !isTaken { refuse() }
    }

    /// Starts to drain the queue, or a timer that does so later.
    /// - Parameter isHurried: true to hold no job.
    private func start(_ state: inout State, isHurried: Bool = false) {
        if !isHurried, state.mayHold(at: .now) {
            if state.drain == .none {
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Self.linger)) { self.endHolding() }
            }
            state.drain = .scheduled
        } else {
            state.drain = .running
            pool.asyncWriteWithoutTransaction { self.drain(in: $0) }
        }
    }

    private func endHolding() {
        state.withLock { state in
            if state.drain == .scheduled, !state.isClosed { start(&state, isHurried: true) }
        }
    }

    /// Commits one group, then re-queues itself, so that other work for the writer's thread runs between two groups.
    private func drain(in db: Database) {
        gather()
        guard let group = nextGroup() else { return }
        run(group[...], on: db)
        state.withLock { state in
            state.drain = .none
            if !state.waiting.isEmpty, !state.isClosed { start(&state) }
        }
    }

    /// Where many wait at a time, waits a moment until as many have come as in the last group: a commit costs as much for all of them as for one.
    private func gather() {
        while true {
            let isWaiting = state.withLock { state in
                guard state.company >= Self.manyCount, state.waiting.count < state.company, !state.isClosed, let first = state.waiting.first
                else { return false }
                return .now - first.since < .milliseconds(Self.gathering)
            }
            guard isWaiting else { return }
            usleep(200)
        }
    }

    private func nextGroup() -> [Job]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.drain = .none
                return nil
            }
            var weight: Int64 = 0
            var count = 0
            for next in state.waiting {
                weight += next.weight
                if count > 0 && weight > groupWeight { break }
                count += 1
            }
            let group = state.waiting.prefix(count).map(\.job)
            state.waiting.removeFirst(count)
            state.company = group.count { !$0.mayLinger }
            return group
        }
    }

    private func run(_ group: ArraySlice<Job>, on db: Database) {
        guard let partner, group.contains(where: { $0.scope != .own }) else { return commit(group, on: db) }
        var outcome = Outcome.unasked
        while case .unasked = outcome { outcome = commit(group, with: partner, on: db) }
        if case .refused = outcome {
            // One of the jobs is the cause: the others need not fail with it.
            for index in group.indices { run(group[index...index], on: db) }
            return
        }
        guard case .absent(let absence) = outcome else { return }
        // Without the partner, only jobs that need it not.
        func isAble(_ job: Job) -> Bool { job.scope == .own || job.scope == .either && absence.permitsEither }
        let able = group.filter(isAble)
        for job in group where !isAble(job) { job.refuse(absence.error) }
        if !able.isEmpty { commit(able[...], on: db, alone: partner) }
    }

    /// What became of a group in a transaction of both databases.
    private enum Outcome {
        /// Every caller was answered.
        case answered
        /// The transaction was the partner's: no job has run.
        case unasked
        /// The partner takes no part; everything was rolled back.
        case absent(PartnerAbsence)
        /// The partner does not permit what several jobs have changed; everything was rolled back.
        case refused
    }

    /// Commits a group in both databases, the partner's first.
    private func commit(_ group: ArraySlice<Job>, with partner: any CommitPartner, on db: Database) -> Outcome {
        var (answers, failure): ([Answer], (any Error)?) = ([], nil)
        var (mayRun, isPrepared) = (true, false)
        do {
            try db.beginTransaction(.immediate)
            mayRun = try partner.begin(
                in: db, isReading: group.allSatisfy { [.feed, .own].contains($0.scope) }, bodies: group.compactMap(\.body))
            if mayRun { answers = try run(group, in: db) }
            try partner.prepare(in: db)
            isPrepared = true
            try db.commit()
        } catch {
            partner.abandon()
            try? db.rollback()
            if let absence = error as? PartnerAbsence {
                if !absence.isUnknown { return .absent(absence) }
                failure = absence.error
            } else if let refusal = error as? PartnerRefusal {
                if !mayRun, (try? partner.bringLess(after: refusal, in: db)) != nil { return .unasked }
                if group.count > 1 { return .refused }
                failure = refusal.error
            } else {
                failure = isPrepared ? partner.isHalfCommitted(by: error) : error
            }
        }
        // Before others learn of it: what they read then is not taken for older.
        turnCount.add(1, ordering: .releasing)
        partner.ended(in: db, isCommitted: failure == nil)
        if !mayRun, failure == nil {
            endTurn(on: db)
            return .unasked
        }
        finish(group, answers: answers, failure: failure ?? place?.confirm().map(partner.isHalfCommitted), on: db)
        return .answered
    }

    /// - Parameter partner: told about changes that it has no part in; nil for changes that never concern it.
    private func commit(_ group: ArraySlice<Job>, on db: Database, alone partner: (any CommitPartner)? = nil) {
        var (answers, failure): ([Answer], (any Error)?) = ([], nil)
        do {
            if let plain = try commitPlain(group, on: db, alone: partner) {
                answers = plain
            } else {
                try db.beginTransaction(.immediate)
                try partner?.beginAlone(in: db)
                answers = try run(group, in: db)
                try partner?.endAlone(in: db)
                try db.commit()
            }
        } catch {
            failure = error
            try? db.rollback()
        }
        finish(group, answers: answers, failure: failure, on: db)
    }

    /// Commits a group of several repeatable jobs without savepoints.
    /// - Returns: nil if the group is another, or a job has failed: nothing has changed then.
    private func commitPlain(_ group: ArraySlice<Job>, on db: Database, alone partner: (any CommitPartner)?) throws -> [Answer]? {
        guard partner == nil, group.count > 1, group.allSatisfy(\.isRepeatable) else { return nil }
        try db.beginTransaction(.immediate)
        var answers: [Answer] = []
        for job in group {
            let (failure, answer) = job.run(db, true)
            guard failure == nil, db.isInsideTransaction else {
                if db.isInsideTransaction { try db.rollback() }
                return nil
            }
            answers.append(answer)
        }
        try db.commit()
        return answers
    }

    /// Runs the jobs of a group.
    /// - Throws: `JobsFailed` with the answers so far when the whole transaction is lost.
    private func run(_ group: ArraySlice<Job>, in db: Database) throws -> [Answer] {
        var answers: [Answer] = []
        for job in group {
            let (failure, answer) = job.run(db, group.count == 1)
            answers.append(answer)
            // A full disk or an I/O error aborts the whole transaction: the earlier jobs are rolled back too.
            guard db.isInsideTransaction else {
                throw JobsFailed(answers: answers, TransactionLost(isFull: (failure as? DatabaseError)?.saysFull == true))
            }
            if group.count == 1, let failure { throw JobsFailed(answers: answers, failure) }
        }
        return answers
    }

    private struct JobsFailed: Error {
        let answers: [Answer]
        let reason: any Error

        init(answers: [Answer], _ reason: any Error) { (self.answers, self.reason) = (answers, reason) }
    }

    private func finish(_ group: ArraySlice<Job>, answers: [Answer], failure: (any Error)?, on db: Database) {
        let failed = failure as? JobsFailed
        let (answers, failure) = (failed?.answers ?? answers, failed?.reason ?? failure ?? place?.confirm())
        endTurn(on: db)
        for answer in answers { answer(failure) }
        let unasked = group.dropFirst(answers.count)
        if failure is TransactionLost, !unasked.isEmpty { return run(unasked, on: db) }
        for job in unasked { job.refuse(failure) }
    }

    private func endTurn(on db: Database) {
        turnCount.add(1, ordering: .releasing)
        afterCommit(db)
    }

    /// Returns the result of one job: its own error takes precedence over the group's, unless it is `TransactionLost`, which only means
    /// that the group had already failed.
    private static func answer<T>(own: Result<T, any Error>, group: (any Error)?) -> Result<T, any Error> {
        if case .failure(let error) = own, !(error is TransactionLost) { return own }
        return group.map(Result.failure) ?? own
    }

    /// Runs `body` in a savepoint with cached statements; GRDB's `inSavepoint` makes SQLite parse its statements anew for every job.
    private static func inSavepoint<T>(in db: Database, _ body: () throws -> T) throws -> T {
        guard db.isInsideTransaction else { throw TransactionLost() }
        try db.cachedStatement(sql: "SAVEPOINT job").execute()
        do {
            let value = try body()
            guard db.isInsideTransaction else { throw TransactionLost() }
            try db.cachedStatement(sql: "RELEASE job").execute()
            return value
        } catch {
            guard db.isInsideTransaction else { throw error }
            try db.cachedStatement(sql: "ROLLBACK TO job").execute()
            try db.cachedStatement(sql: "RELEASE job").execute()
            throw error
        }
    }
}

/// Thrown when the store has been closed.
package struct QueueClosed: Error {}

/// Thrown when SQLite aborted the whole transaction while a job ran; none of its changes were written.
package struct TransactionLost: Error {
    /// True if the disk was full; false for an I/O error.
    package var isFull = false
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}

/// A moment at which a crash must lose nothing. K7–K9 are on the wire: the test's peer kills the process there
/// (docs/outbox.md#fault-points).
package enum FailPoint: String, CaseIterable, Sendable {
    case requestRead = "K1"
    case blobWritten = "K2"
    case blobSynchronized = "K3"
    case beforeAcceptCommit = "K4"
    case afterAcceptCommit = "K5"
    case leaseCommitted = "K6"
    case answerHeadRead = "K10"
    case beforeOutcomeCommit = "K11"
    case afterOutcomeCommit = "K12"
    case projected = "K13"
    case squashing = "K14"
    case merging = "K15"
    case purging = "K16"
    case migrating = "K17"
    case beforeSharedCommit = "F1"
    case betweenCommits = "F2"
    case afterEmptying = "F3"

    /// `ROCKPOOL_KILL_AT=K5`, or `K5:3` for the third time the point is reached. Unset outside tests.
    private static let words = unsafe getenv("ROCKPOOL_KILL_AT").map { unsafe String(cString: $0).split(separator: ":") } ?? []
    private static let armed = words.first.flatMap { FailPoint(rawValue: String($0)) }
    private static let countdown = Atomic(words.dropFirst().first.flatMap { Int($0) } ?? 1)

    /// Kills the process at once with SIGKILL if this point is armed and its countdown has ended.
    package func reached() {
        guard Self.armed == self, Self.countdown.subtract(1, ordering: .relaxed).newValue == 0 else { return }
        kill(getpid(), SIGKILL)
        // No further statement may run before the signal takes effect.
        while true { pause() }
    }
}
