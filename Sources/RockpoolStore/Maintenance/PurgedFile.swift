// `state_dir/purged-YYYYMM.jsonl`: purged operations that had failed, one per line, on the disk before their row is deleted
// (docs/outbox.md#retention).
import Glibc
import RockpoolCore

/// The file of one month, or the file of unproved operations. Such a file counts against the data limit until the operator removes it.
struct PurgedFile: Sendable {
    let path: String
    /// Bytes past which the file is restarted; nil: never.
    private let limit: Int64?
    private let directory: String
    private let footprint: Footprint

    init(directory: String, month moment: Timestamp, footprint: Footprint) {
        self.directory = directory
        self.footprint = footprint
        limit = nil
        let digits = RFC3339.format(moment).prefix(7).filter { $0 != "-" }
        path = "\(directory)/purged-\(digits).jsonl"
    }

    /// `purged-unproved.jsonl`, bounded, because clients without an accepted credential cause these lines and must not use up the space of
    /// others.
    /// - Parameter limit: bytes; a single longer line is written all the same.
    init(unprovedIn directory: String, limit: Int64, footprint: Footprint) {
        self.directory = directory
        self.footprint = footprint
        self.limit = limit
        path = "\(directory)/purged-unproved.jsonl"
    }

    /// Appends a line. An incomplete last line left by a crash is terminated first.
    /// - Throws: `DataStoreError.full`, `FileError`.
    func append(_ line: [UInt8]) throws {
        let length = Int64(line.count) + 2
        let room = SpaceRequest(files: Cost.file(length))
        guard footprint.reserve(room) == .granted else { throw DataStoreError.full }
        defer { footprint.release(room) }
        if let limit, let old = FileStatus.of(path), old.size + length > limit, Paths.remove(path) { footprint.addFixed(-old.allocated) }
        let before = FileStatus.of(path)
        let file = try Descriptor(path, O_RDWR | O_CREAT | O_APPEND)
        var last: UInt8 = 0x0A
        if let size = before?.size, size > 0 { unsafe pread(file.number, &last, 1, off_t(size - 1)) }
        try file.write(all: (last == 0x0A ? [] : [0x0A]) + line + [0x0A])
        footprint.addFixed((FileStatus.of(path)?.allocated ?? 0) - (before?.allocated ?? 0))
    }

    /// Makes the lines and the file's name survive a power failure.
    func synchronize() throws {
        try Descriptor(path, O_RDWR).synchronize()
        try Paths.synchronizeDirectory(directory)
    }
}
