// What cleanup would take from the outbox (docs/storage.md#cleanup).
import FoundationEssentials
import GRDB
import RockpoolCore

/// Finds the removable data of a data store, running or stopped; changes nothing.
struct OutboxLook: Sendable {
    let reader: any DatabaseReader
    let directory: String
    let lanes: FileLanes

    struct Orphans: Sendable {
        /// Names in `blobs/` that no operation references and no writer holds.
        var blobs: [String]
        /// Paths of temporaries without a writer.
        var temporaries: [String]
        var count: Int { blobs.count + temporaries.count }
    }

    /// Returns the operations past their retention, the number of all operations, that of the other ones that wait, and the number of purges
    /// to announce.
    func operations(
        _ retention: Retention, now: Timestamp
    ) async throws -> (ended: [(sequence: Int64, bytes: Int64)], total: Int, waiting: Int, due: Int) {
        try await reader.read { db in
            let ended = try DataStore.ended(in: db, retention: retention, now: now)
            let gone = Set(ended.map(\.sequence))
            let waiting = try Int64.fetchAll(db, sql: "SELECT seq FROM op WHERE \(OperationState.isOpen) AND state <> 'dead'")
            return (
                ended, try Int.fetchOne(db, sql: "SELECT count(*) FROM op") ?? 0, waiting.count { !gone.contains($0) },
                try DataStore.purgesToAnnounce(in: db, retention: retention, now: now)
            )
        }
    }

    /// Adds the same numbers to the report of a dry run.
    func count(_ retention: Retention, now: Timestamp, run: CleanupRun) async throws {
        let (ended, total, waiting, due) = try await operations(retention, now: now)
        run.note { $0.operations = .init(purged: ended.count, kept: total - ended.count, waiting: waiting, warned: due) }
        run.freeRows(ended.reduce(0) { $0 + $1.bytes })
    }

    /// Lists the files of `blobs/` before reading the rows, and before calling `held` for the temporaries and blobs of writers.
    func orphans(held: @Sendable () -> (spools: Set<String>, unattached: Set<String>)) async throws -> Orphans {
        let root = "\(directory)/blobs"
        let (names, temporaries) = try await lanes.run(0) {
            (Paths.names(in: root).filter { Digest.bytes($0) != nil }, Paths.names(in: "\(root)/tmp"))
        }
        let named = try await reader.read { db in Set(try Data.fetchAll(db, sql: "SELECT sha FROM blob").map { Digest.hex($0) }) }
        let (spools, unattached) = held()
        return Orphans(
            blobs: names.filter { !named.contains($0) && !unattached.contains($0) },
            temporaries: temporaries.filter { !spools.contains($0) }.map { "\(root)/tmp/\($0)" })
    }
}
