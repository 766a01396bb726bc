// Removal of leftovers of a crash: files without rows, rows without files, temporaries without a writer (docs/storage.md#cleanup step 4).
import GRDB
import RockpoolCore

/// Compares the directory of a cache with its rows, a shard at a time.
struct OrphanCleanup: Sendable {
    let directory: String
    let reader: any DatabaseReader
    let lanes: FileLanes
    /// nil in a dry run.
    let deeds: CleanupDeeds?
    /// Returns true if a body's file is about to be unlinked or to get its row.
    let isAwaited: @Sendable ([UInt8]) -> Bool
    /// Names in `tmp/` that a writer owns.
    let spools: @Sendable () -> Set<String>

    func take(_ entries: inout EntryCleanup, run: CleanupRun) async throws {
        let shards = BodyShards(root: "\(directory)/bodies")
        let reader = reader
        let foreign = try await lanes.run(1) { shards.foreign() }
        run.note { $0.foreign += foreign.count }
        for shard in UInt8.min...UInt8.max {
            let found = try await lanes.run(1) { try shards.difference(in: shard, reader: reader) }
            let unnamed = found.unnamed.filter { !isAwaited($0) }
            let count = try await deeds?.unlink(unnamed) ?? unnamed.count
            if deeds == nil {
                let place = "\(directory)/bodies/\(Digest.hex([shard]))"
                run.freeFiles(
                    try await lanes.run(1) {
                        unnamed.reduce(0) { $0 + (FileStatus.of("\(place)/\(Digest.hex($1))")?.allocated ?? 0) }
                    })
            }
            run.note { report in
                report.orphans += count
                report.foreign += found.foreign.count
            }
            try await entries.takeLost(found.missing, run: run)
        }
    }

    func takeTemporaries(_ run: CleanupRun) async throws {
        let (path, spools, isDryRun) = ("\(directory)/tmp", spools, deeds == nil)
        let (count, bytes) = try await lanes.run(1) {
            // The files are listed before `spools` is read: a writer registers its name before it creates its file.
            Paths.names(in: path).reduce(into: (0, Int64(0))) { sum, name in
                let bytes = FileStatus.of("\(path)/\(name)")?.allocated ?? 0
                guard !spools().contains(name), isDryRun || Paths.remove("\(path)/\(name)") else { return }
                sum = (sum.0 + 1, sum.1 + bytes)
            }
        }
        run.note { $0.orphans += count }
        if isDryRun { run.freeFiles(bytes) }
    }
}
