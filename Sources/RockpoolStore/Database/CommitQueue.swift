// Group commit: what waits is written in one transaction, and one fsync serves it all (storage.md §5).
import GRDB
import Synchronization

/// The one writer of a database.
///
/// Jobs queue here; a drain on the writer's thread takes those that wait, runs each in a savepoint of one transaction,
/// commits once, then answers every caller. A job that fails fails alone; a commit that fails fails all.
final class CommitQueue: Sendable {
    /// Runs the job, and returns its failure, if it had one, and how to answer its caller once the fate of the transaction is known.
    /// A job that is alone in its transaction needs no savepoint, whose journal SQLite would put into a file once it is large.
    private typealias Job = @Sendable (Database, _ isAlone: Bool) -> (failure: (any Error)?, answer: Answer)
    private typealias Answer = @Sendable ((any Error)?) -> Void

    private struct State {
        var waiting: [(weight: Int64, since: ContinuousClock.Instant, job: Job)] = []
        var isDraining = false
        var isClosed = false
    }

    /// Bytes of one transaction, so that a crowd of large jobs cannot grow the log without bound.
    private let groupWeight: Int64
    private let pool: DatabasePool
    private let state = Mutex(State())
    /// Called on the writer's thread after every commit, outside any transaction.
    private let afterCommit: @Sendable (Database) -> Void

    /// - Parameter groupWeight: bytes that one transaction takes at most; a single larger job goes alone.
    init(pool: DatabasePool, groupWeight: Int64, afterCommit: @escaping @Sendable (Database) -> Void = { _ in }) {
        self.pool = pool
        self.groupWeight = groupWeight
        self.afterCommit = afterCommit
    }

    /// Runs `body` in a transaction shared with others, and returns when that is committed.
    ///
    /// - Parameter weight: bytes it will write, roughly.
    /// - Throws: what `body` throws (its own changes are undone), the commit's error, or `QueueClosed`.
    func commit<T: Sendable>(
        weight: Int64 = 4096, _ body: @escaping @Sendable (Database) throws -> T
    ) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            enqueue(weight: weight, orElse: { continuation.resume(throwing: QueueClosed()) }) { db, isAlone in
                let result = Result { isAlone ? try body(db) : try Self.inSavepoint(db) { try body(db) } }
                return (result.failure, { failure in continuation.resume(with: Self.answer(own: result, group: failure)) })
            }
        }
    }

    /// Runs `body` on the writer's connection outside any transaction, after what already waits: VACUUM, checkpoints, measuring.
    func outside<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            // Under the lock: nothing may reach the connection behind the last turn of `close`.
            let isTaken = state.withLock { state in
                if state.isClosed { return false }
                pool.asyncWriteWithoutTransaction { db in
                    let result = Result { try body(db) }
                    self.afterCommit(db)
                    continuation.resume(with: result)
                }
                return true
            }
            if !isTaken { continuation.resume(throwing: QueueClosed()) }
        }
    }

    /// How long the first in line has been waiting; zero when nobody is.
    func waited(until now: ContinuousClock.Instant) -> Duration { state.withLock { $0.waiting.first.map { now - $0.since } ?? .zero } }

    /// Takes no more jobs; returns when those taken have been answered.
    func close() async {
        state.withLock { $0.isClosed = true }
        await withCheckedContinuation { continuation in
            pool.asyncWriteWithoutTransaction { db in
                while let group = self.nextGroup() { self.run(group[...], on: db) }
                continuation.resume()
            }
        }
    }

    private func enqueue(weight: Int64, orElse refuse: () -> Void, _ job: @escaping Job) {
        enum Step { case refuse, start, wait }
        let step: Step = state.withLock { state in
            if state.isClosed { return .refuse }
            state.waiting.append((weight, .now, job))
            if state.isDraining { return .wait }
            state.isDraining = true
            return .start
        }
        switch step {
        case .refuse: refuse()
        case .wait: break
        case .start: pool.asyncWriteWithoutTransaction { self.drain($0) }
        }
    }

    /// Commits one group, and lets what else waits for the thread go before the next.
    private func drain(_ db: Database) {
        guard let group = nextGroup() else { return }
        run(group[...], on: db)
        pool.asyncWriteWithoutTransaction { self.drain($0) }
    }

    private func nextGroup() -> [Job]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isDraining = false
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
            return group
        }
    }

    private func run(_ group: ArraySlice<Job>, on db: Database) {
        var answers: [Answer] = []
        var failure: (any Error)?
        do {
            try db.beginTransaction(.immediate)
            for job in group {
                let (failure, answer) = job(db, group.count == 1)
                answers.append(answer)
                // A full disk or an I/O error ends the transaction itself: what went before is undone too.
                guard db.isInsideTransaction else { throw TransactionLost(isFull: (failure as? DatabaseError)?.saysFull == true) }
                if group.count == 1, let failure { throw failure }
            }
            try db.commit()
        } catch {
            failure = error
            try? db.rollback()
        }
        afterCommit(db)
        for answer in answers { answer(failure) }
        let unasked = group.dropFirst(answers.count)
        if failure is TransactionLost, !unasked.isEmpty { return run(unasked, on: db) }
        for job in unasked { job(db, false).answer(failure) }
    }

    /// A job's own failure says more than the group's, unless it only says that the group had already failed.
    private static func answer<T>(own: Result<T, any Error>, group: (any Error)?) -> Result<T, any Error> {
        if case .failure(let error) = own, !(error is TransactionLost) { return own }
        return group.map(Result.failure) ?? own
    }

    /// GRDB's own `inSavepoint` has SQLite parse its statements every time; this is done for every job, so they are kept prepared.
    private static func inSavepoint<T>(_ db: Database, _ body: () throws -> T) throws -> T {
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

/// The store has been closed.
package struct QueueClosed: Error {}

/// SQLite gave up the whole transaction while a job ran; nothing of it was written.
package struct TransactionLost: Error {
    /// Because the disk was full, as opposed to an I/O error.
    package var isFull = false
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
