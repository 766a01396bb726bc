// Live writes that are under way: recorded before their bytes are sent, and made operations at a start after a crash
// (docs/outbox.md#live-writes).
import GRDB
import Logging
import RockpoolCore

extension DataStore {
    /// Time after which the rows of ended live writes are deleted, if no other commit has taken them with it.
    private static let deletionDelay = Duration.seconds(1)

    /// Records a write that is about to be sent while its client waits. When this returns, the record survives a power failure: after a
    /// crash the write is an operation in the state `uncertain`, unless `end` was called or the write was queued with `ending`.
    ///
    /// A small write takes a slot of the file `live-writes`; a larger one, and one that finds no slot, is a row: one group commit, which also
    /// deletes the rows of ended live writes. The limit of the outbox applies to rows, the shares do not.
    /// - Parameter answer: called once with the record, or with `DataStoreError.full` or `.unavailable` if nothing is recorded; on any thread.
    package func record(live new: QueuedWriteDraft, answer: @escaping @Sendable (Result<LiveWriteTrace, any Error>) -> Void) {
        let isTaken =
            values(of: new).map { values in
                liveFile.record(values) { [self] trace, isDurable in
                    guard !isDurable else { return answer(.success(trace)) }
                    end(trace)
                    recordRow(of: new, answer: answer)
                }
            } ?? false
        if !isTaken { recordRow(of: new, answer: answer) }
    }

    /// Returns what a slot holds of a write, sealed as `storage.encrypt` demands, or for its secrets; nil if it has no room for it.
    private func values(of new: QueuedWriteDraft) -> [UInt8]? {
        guard new.body.blobHash == nil, new.rowLength <= LiveWriteFile.valuesLimit else { return nil }
        let values = LiveWriteRow.encoded(new, now: clock())
        if seal.isSealing { return try? seal.seal(values) }
        let hasSecrets = SecretParameters.occur(in: new.request.target) || SecretFields.occur(in: new.request.fields)
        return hasSecrets ? try? seal.sealOwn(values) : values
    }

    private func recordRow(of new: QueuedWriteDraft, answer: @escaping @Sendable (Result<LiveWriteTrace, any Error>) -> Void) {
        let (trace, ended, now) = (liveWrites.begin(hasBlob: new.body.blobHash != nil), liveWrites.takeEnded(), clock())
        let cost = Cost.row(new.rowLength)
        queue.submit(weight: cost / 2, scope: .own, isRepeatable: true) { db in
            let unused = try Self.deleteLiveWrites(ended, in: db)
            try self.checkRoom(in: db, for: cost)
            try self.attachBlob(of: new.body, in: db)
            try LiveWriteRow.insert(new, as: trace, in: db, now: now)
            return unused
        } answer: { [self] result in
            switch translated(result) {
            case .success(let unused):
                noteDeleted(ended, unused: unused)
                answer(.success(trace))
            case .failure(let error):
                liveWrites.keep(ended)
                // A failed commit may be in the log, and its row there after a crash.
                end(trace)
                answer(.failure(error))
            }
        }
    }

    /// Records a write as `record(live:answer:)` does.
    package func record(live new: QueuedWriteDraft) async throws -> LiveWriteTrace {
        try await withCheckedThrowingContinuation { continuation in record(live: new) { continuation.resume(with: $0) } }
    }

    /// Ends the record of a live write, because its client gets an answer: after this no crash of the process makes it uncertain. No
    /// effect if the record has ended.
    package func end(_ trace: LiveWriteTrace) {
        guard trace.isInFile ? liveFile.end(trace) : liveWrites.end(trace) else { return }
        Task { [weak self] in
            try? await Task.sleep(for: Self.deletionDelay)
            await self?.deleteEndedLiveWrites()
        }
    }

    /// Deletes what is left of ended live writes, so that it survives no power failure. Rows that cannot be deleted now are deleted with a later commit, or at the next start.
    package func deleteEndedLiveWrites() async {
        await liveFile.clearEnded()
        let ended = liveWrites.takeDue()
        guard !ended.isEmpty else { return }
        do {
            let unused = try await queue.commit(scope: .own) { try Self.deleteLiveWrites(ended, in: $0) }
            noteDeleted(ended, unused: unused)
        } catch {
            liveWrites.keep(ended)
        }
    }

    private func noteDeleted(_ ended: [LiveWriteTrace], unused: [String]) {
        liveWrites.free(ended)
        guard !unused.isEmpty else { return }
        Task { try? await removeUnnamed(unused) }
    }

    /// - Returns: the names of blobs that no row references any more.
    private static func deleteLiveWrites(_ ended: [LiveWriteTrace], in db: Database) throws -> [String] {
        guard !ended.isEmpty else { return [] }
        try LiveWriteRow.delete(ended, in: db)
        return ended.contains { $0.hasBlob } ? try forgetUnusedBlobs(in: db) : []
    }

    /// Makes operations of the live writes that were under way when the last run ended; call it after `ShareSums.begin`.
    /// - Returns: the names of blobs that no row references any more.
    func adoptLiveWrites(in db: Database, now: Timestamp) throws -> [String] {
        try makeRowsOfInterrupted(in: db)
        let traces = try LiveWriteRow.all(in: db)
        guard !traces.isEmpty else { return [] }
        var count = 0
        for trace in traces where !liveWrites.earlier.contains(trace) {
            do {
                try db.inSavepoint {
                    try LiveWriteRow.adopt(trace, in: db, now: now)
                    return .commit
                }
                count += 1
            } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
                // The operation is there already, or one with the same key of its client.
                logger.warning("a live write that a crash interrupted is not listed", metadata: ["error": "\(error)"])
            }
        }
        if count > 0 {
            let writes = count.counted("write was", "writes were")
            logger.warning("\(writes) being sent to an upstream when the last run ended; see rockpool outbox ls")
        }
        return try Self.deleteLiveWrites(traces, in: db)
    }

    /// Makes rows of the live writes that were under way in the file.
    private func makeRowsOfInterrupted(in db: Database) throws {
        if liveFile.damaged > 0 {
            logger.warning(
                "live-writes has \(liveFile.damaged) damaged records: a power failure cut writes off before they were sent, or the file was changed"
            )
        }
        for record in liveFile.interrupted {
            do {
                let values = BodySeal.isSealed(record.values) ? try seal.open(record.values) : record.values
                guard let row = RowBytes(values) else { throw LiveWriteBroken() }
                try db.inSavepoint {
                    try LiveWriteRow.insert(row, token: record.token, in: db)
                    return .commit
                }
            } catch  where !(error is DatabaseError) || (error as? DatabaseError)?.resultCode == .SQLITE_CONSTRAINT {
                logger.error("a live write that a crash interrupted cannot be read", metadata: ["error": "\(error)"])
            }
        }
    }
}

/// The values of a live write have no known form.
private struct LiveWriteBroken: Error, CustomStringConvertible {
    var description: String { "its record has an unknown form" }
}

// MARK: - Rows

/// The statements of `live_write`: its columns are columns of `op`, so that a row becomes an operation as it is (docs/outbox.md#schema).
enum LiveWriteRow {
    /// The columns of `op` that are not in `live_write`: what an operation gets when it is made, and the representation that it builds on.
    private static let absent: Set<String> = [
        "base_sha", "base_seq", "viewer", "base_seen", "state", "reason", "last_error", "first_sent_at", "next_at", "sent_tick",
    ]
    private static let columns = OperationColumn.bound.filter { !absent.contains($0.name) }
    private static let names = columns.map(\.name).joined(separator: ", ")

    private static let insertion: String = {
        let values = columns.compactMap(\.placeholder).joined(separator: ", ")
        return "INSERT INTO live_write (n, token, unproved, \(names)) VALUES (?, ?, ?, \(values))"
    }()

    /// Makes an operation of the row ?1 at the moment ?2: uncertain, and due for its first look.
    private static let adoption: String = {
        let placed = OperationColumn.table.filter { $0.bind == nil && $0.inserted != nil }
        let given = (placed.map(\.name) + ["state", "reason", "first_sent_at", "next_at", "sent_tick"]).joined(separator: ", ")
        let values = placed.compactMap(\.inserted) + ["'uncertain'", "'\(OperationReason.crashed.rawValue)'", "accepted_at", "?2", "0"]
        return "INSERT INTO op (\(names), \(given)) SELECT \(names), \(values.joined(separator: ", ")) FROM live_write WHERE n = ?1"
    }()

    private static let share = Array("unproved".utf8)
    private static let bindings = columns.compactMap { column in column.bind.map { (name: Array(column.name.utf8), value: $0) } }

    /// Returns the values of the row of a write, as they are kept in a file: those of a `RowBytes`.
    static func encoded(_ new: QueuedWriteDraft, now: Timestamp) -> [UInt8] {
        let row = NewOperationRow(new: new, base: nil, pinned: nil, now: now)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(.kib(1))
        RowBytes.append((new.share == .unproved).databaseValue, named: share, to: &bytes)
        for binding in bindings { RowBytes.append(binding.value(row)?.databaseValue ?? .null, named: binding.name, to: &bytes) }
        return bytes
    }

    /// Inserts a row with values that `encoded` has made, perhaps in another version.
    static func insert(_ values: RowBytes, token: Int64, in db: Database) throws {
        let known = columns.filter { column in values.values.contains { $0.name == column.name } }
        let sql = """
            INSERT INTO live_write (n, token, unproved, \(known.map(\.name).joined(separator: ", ")))
                VALUES ((SELECT coalesce(max(n) + 1, 0) FROM live_write), ?, ?, \(known.compactMap(\.placeholder).joined(separator: ", ")))
            """
        try db.cachedStatement(sql: sql).run([token.databaseValue, values["unproved"]] + known.map { values[$0.name] }, in: db)
    }

    static func insert(_ new: QueuedWriteDraft, as trace: LiveWriteTrace, in db: Database, now: Timestamp) throws {
        let row = NewOperationRow(new: new, base: nil, pinned: nil, now: now)
        let own = [trace.slot.databaseValue, trace.token.databaseValue, (new.share == .unproved).databaseValue]
        try db.cachedStatement(sql: insertion).run(own + columns.map { $0.value(of: row) }, in: db)
    }

    static func delete(_ traces: [LiveWriteTrace], in db: Database) throws {
        guard !traces.isEmpty else { return }
        let statement = try db.cachedStatement(sql: "DELETE FROM live_write WHERE n = ? AND token = ?")
        for trace in traces { try statement.run([trace.slot.databaseValue, trace.token.databaseValue], in: db) }
    }

    /// Makes an operation of a row, as it would be if it had been queued before its live attempt: with that attempt as number 0, its local
    /// id and its share. Needs none of the dependencies of a queued write: a write is sent live only if it need not wait.
    static func adopt(_ trace: LiveWriteTrace, in db: Database, now: Timestamp) throws {
        try db.execute(sql: adoption, arguments: [trace.slot, now.milliseconds])
        let sequence = db.lastInsertedRowID
        try db.execute(
            sql: """
                INSERT INTO attempt (seq, n, started, ended, error, evidence)
                    SELECT ?1, 0, accepted_at, max(accepted_at, ?3), 'crashed', 'maybe' FROM live_write WHERE n = ?2
                """, arguments: [sequence, trace.slot, now.milliseconds])
        let new = try String.fetchOne(db, sql: "SELECT local_id FROM live_write WHERE n = ?", arguments: [trace.slot])
        if case .local(let id)? = new.map(NewItemID.init) {
            try db.execute(
                sql: """
                    INSERT OR IGNORE INTO id_map (local_id, upstream, entity_type, created_by)
                        SELECT ?3, upstream, entity_type, ?1 FROM live_write WHERE n = ?2
                    """, arguments: [sequence, trace.slot, id.text])
        }
        try db.execute(
            sql: "INSERT INTO unproved (seq, principal) SELECT ?1, principal FROM live_write WHERE n = ?2 AND unproved",
            arguments: [sequence, trace.slot])
        try DataStore.log(
            in: db, sequence: sequence, .uncertain, detail: "crashed: it was being sent while its client waited", now: now)
    }

    /// False in a file of an earlier schema.
    private static func isTable(in db: Database) throws -> Bool {
        try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'live_write')") ?? false
    }

    /// Returns every row, in the order in which the writes were sent.
    static func all(in db: Database) throws -> [LiveWriteTrace] {
        guard try isTable(in: db) else { return [] }
        return try Row.fetchAll(db, sql: "SELECT n, token FROM live_write ORDER BY accepted_at, id").map { row in
            var columns = RowReader(row)
            return LiveWriteTrace(slot: try columns.next(), token: try columns.next())
        }
    }

    /// SQL for the rows that name bodies: `id`, `blob_sha`, `body_len`, and `ended` for ended operations.
    static func bodyOwners(in db: Database) throws -> String {
        let operations = "SELECT id, blob_sha, body_len, state IN (\(OperationState.endedList)) AS ended FROM op WHERE blob_sha IS NOT NULL"
        guard try isTable(in: db) else { return "(\(operations))" }
        return "(\(operations) UNION ALL SELECT id, blob_sha, body_len, 0 FROM live_write WHERE blob_sha IS NOT NULL)"
    }
}
