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
    /// One group commit, which also deletes the rows of ended live writes. The limit of the outbox applies, the shares do not.
    /// - Parameter answer: called once with the record, or with `DataStoreError.full` or `.unavailable` if nothing is recorded; on any thread.
    package func record(live new: QueuedWriteDraft, answer: @escaping @Sendable (Result<LiveWriteTrace, any Error>) -> Void) {
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
        guard liveWrites.end(trace) else { return }
        Task { [weak self] in
            try? await Task.sleep(for: Self.deletionDelay)
            await self?.deleteEndedLiveWrites()
        }
    }

    /// Deletes the rows of ended live writes. Rows that cannot be deleted now are deleted with a later commit, or at the next start.
    func deleteEndedLiveWrites() async {
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
        if count > 0 { logger.warning("\(count) writes were being sent to their upstream when the last run ended; see rockpool outbox ls") }
        return try Self.deleteLiveWrites(traces, in: db)
    }
}
