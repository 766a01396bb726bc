// `state_dir/purged-YYYYMM.jsonl`: what was purged while it had failed, a line each, on the disk before its row goes (outbox.md §1.3).
import Glibc
import RockpoolCore

/// The file of one month, or the one of unproved operations. It counts against the data limit until its owner takes it away.
struct PurgedFile: Sendable {
    let path: String
    /// Bytes past which it is begun anew; nil: never.
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

    /// `purged-unproved.jsonl`: what anybody can have written down is bounded, or it would take what belongs to others in the end.
    /// - Parameter limit: bytes; a single line that is longer is written all the same.
    init(unprovedIn directory: String, limit: Int64, footprint: Footprint) {
        self.directory = directory
        self.footprint = footprint
        self.limit = limit
        path = "\(directory)/purged-unproved.jsonl"
    }

    /// One line more. What a crash left of the last one is ended first.
    /// - Throws: `DataStoreError.full`, `FileError`.
    func append(_ line: [UInt8]) throws {
        let length = Int64(line.count) + 2
        let room = Room(files: Cost.file(length))
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

    /// Makes lines and name survive a power cut.
    func synchronize() throws {
        try Descriptor(path, O_RDWR).synchronize()
        try Paths.synchronizeDirectory(directory)
    }
}
