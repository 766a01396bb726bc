// Acceptance of a write: committed and fsynced before it is acknowledged, together with other queued jobs (docs/outbox.md#files).
import FoundationEssentials
import GRDB
import HTTPTypes
import Logging
package import RockpoolCore
import Synchronization

extension DataStore {
    /// Accepts a write. When this returns, the write survives a power failure.
    /// - Throws: `.full`, `.shareUsedUp`, `.duplicateKey`, `.unknownDependency`, `.unavailable`; nothing is stored then.
    package func append(_ new: QueuedWriteDraft) async throws -> QueuedWrite { try await take(new).operation }

    /// Accepts a write; also returns the earlier operation that it was squashed with, if any.
    package func take(_ new: QueuedWriteDraft) async throws -> (operation: QueuedWrite, squashed: QueuedWrite?) {
        while true {
            do { return try await taking(new) } catch DataStoreError.full {
                guard try await shedDelivered() else { throw DataStoreError.full }
            }
        }
    }

    private func taking(_ new: QueuedWriteDraft) async throws -> (operation: QueuedWrite, squashed: QueuedWrite?) {
        let now = clock()
        let cost = Cost.row(new.rowLength)
        let taken = try await translated {
            try await queue.commit(weight: cost / 2) { db -> (operation: QueuedWrite, squashed: QueuedWrite?) in
                try self.checkRoom(in: db, for: cost)
                try self.attachBlob(of: new.body, in: db)
                let base = try new.baseSequence(in: db)
                do {
                    try new.insert(in: db, base: base, now: now)
                } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
                    throw try self.duplicate(of: new, in: db) ?? DataStoreError.unavailable("\(error)")
                }
                let sequence = db.lastInsertedRowID
                try new.insertShare(in: db, sequence: sequence)
                let needs = try new.insertEdges(in: db, sequence: sequence)
                try new.insertLiveAttempt(in: db, sequence: sequence)
                try Self.log(in: db, sequence: sequence, new.state, detail: new.lastError, now: now)
                let squashed = new.maySquash ? try Self.squash(sequence, action: new.action, in: db, now: now) : nil
                try self.checkShare(of: new, in: db)
                FailPoint.beforeAcceptCommit.reached()
                let taken = new.operation(sequence, base: base, needs: needs, now: now)
                guard let squashed else { return (taken, nil) }
                return (try Self.fetch(in: db, where: "seq = ?", [sequence]) ?? taken, squashed)
            }
        }
        if case .blob(let sha256, _) = new.body { releaseBlob(sha256) }
        if let id = new.localID { localIDs.note(id, upstream: new.upstream, collection: new.collection) }
        FailPoint.afterAcceptCommit.reached()
        return taken
    }

    /// Returns the operation accepted under this client key, and true if its payload has this fingerprint.
    package func operation(
        clientKey: String, principal: String?, fingerprint: [UInt8] = []
    ) async throws -> (operation: QueuedWrite, isSame: Bool)? {
        try await reading { db in
            let condition = "principal = ? AND client_key = ?"
            let arguments: StatementArguments = [principal ?? "", clientKey]
            guard let operation = try Self.fetch(in: db, where: condition, arguments) else { return nil }
            let kept = try Data.fetchOne(db, sql: "SELECT fingerprint FROM op WHERE \(condition)", arguments: arguments).map { Array($0) }
            return (operation, kept.map { $0 == fingerprint || self.seal.isName($0, of: fingerprint) } ?? false)
        }
    }

    /// Checks the limit, including the changes of this transaction and the missing part of the reserve, and the free disk space.
    func checkRoom(in db: Database, for cost: Int64) throws {
        footprint.measure(in: db)
        let kept = reserve.size - min(reserve.size, reserve.allocated)
        guard footprint.ledger.missing(for: SpaceRequest(rows: cost)) + kept <= 0 else { throw DataStoreError.full }
        guard FreeSpace.bytes(at: directory) > cost else { throw DataStoreError.full }
    }

    /// Checks the share after the new row was inserted and squashed rows were ended; an error rolls all of it back.
    private func checkShare(of new: QueuedWriteDraft, in db: Database) throws {
        guard let share = new.share else { return }
        let held = try ShareSums.bytes(on: ShareSums.account(share, of: new.principal), in: db)
        guard held <= size(of: share) else { throw DataStoreError.shareUsedUp(share) }
    }

    /// Returns the maximum bytes of the operations of a share.
    func size(of share: OutboxShare) -> Int64 { share.bytes(of: Self.limit(settings).bytes, settings: settings) }

    private func duplicate(of new: QueuedWriteDraft, in db: Database) throws -> DataStoreError? {
        let id = try String.fetchOne(
            db, sql: "SELECT id FROM op WHERE principal = ? AND client_key = ?", arguments: [new.principal ?? "", new.idempotencyKey])
        return id.map(DataStoreError.duplicateKey)
    }

    /// Appends a line to the sync log.
    static func log(in db: Database, sequence: Int64, _ state: OperationState, detail: String?, now: Timestamp) throws {
        try db.cachedStatement(sql: "INSERT INTO sync_log (at, seq, event, detail) VALUES (?, ?, ?, ?)")
            .execute(arguments: [now.milliseconds, sequence, state.rawValue, detail])
    }

    static func fetch(in db: Database, where condition: String, _ arguments: StatementArguments) throws -> QueuedWrite? {
        try Row.fetchOne(
            try db.cachedStatement(sql: "SELECT \(OperationRow.columns) FROM op WHERE \(condition)"), arguments: arguments
        ).map(OperationRow.operation(from:))
    }

    /// Runs `body`, updates the health state, and maps SQLite's errors to `DataStoreError`.
    func translated<T>(_ body: () async throws -> T) async throws -> T {
        do {
            let value = try await body()
            noteWritten()
            return value
        } catch let error as DatabaseError {
            noteFailure(error)
            throw error.saysFull ? DataStoreError.full : DataStoreError.unavailable("\(error)")
        } catch is QueueClosed {
            throw DataStoreError.unavailable("the store is closed")
        } catch let error as TransactionLost {
            noteFailure(error)
            throw error.isFull ? DataStoreError.full : DataStoreError.unavailable("\(error)")
        }
    }

    private func noteWritten() {
        if health.withLock({ $0.wrote() }) == .recovered { logger.notice("the outbox can be written to again") }
    }

    private func noteFailure(_ error: any Error) {
        guard let fault = StorageHealth.Fault(error) else { return }
        let change = health.withLock { $0.failed(fault, detail: "\(error)", now: clock()) }
        if case .fell = change {
            logger.error("the outbox cannot be written to", metadata: ["fault": "\(fault.rawValue)", "error": "\(error)"])
        }
    }

    /// The reason why the last write failed; nil when it succeeded.
    package var trouble: StorageHealth.Trouble? { health.withLock(\.trouble) }

    /// Like `translated`, for results that must be recorded even on a full disk: the reserve is released for them. All jobs of the failed
    /// group fail, so each caller retries once; every job passed here must be repeatable.
    func recorded<T>(_ body: () async throws -> T) async throws -> T {
        do {
            let value = try await body()
            noteWritten()
            return value
        } catch let error where error is TransactionLost || (error as? DatabaseError)?.saysFull == true {
            let isFull = (error as? TransactionLost)?.isFull ?? true
            if isFull, reserve.giveUp() { logger.error("the disk is full; the reserve is given up to record what was sent") }
            return try await translated(body)
        } catch {
            return try await translated { throw error }
        }
    }
}
