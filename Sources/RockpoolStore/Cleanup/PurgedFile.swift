// `state_dir/purged-YYYYMM.jsonl`: what was purged while it had failed, a line each, on the disk before its row goes (outbox.md §1.3).
import Glibc
import RockpoolCore

/// The file of one month. It counts against the data limit until its owner takes it away.
struct PurgedFile: Sendable {
    let path: String
    private let directory: String
    private let footprint: Footprint

    init(directory: String, month moment: Timestamp, footprint: Footprint) {
        self.directory = directory
        self.footprint = footprint
        let digits = RFC3339.format(moment).prefix(7).filter { $0 != "-" }
        path = "\(directory)/purged-\(digits).jsonl"
    }

    /// One line more. What a crash left of the last one is ended first.
    /// - Throws: `DataStoreError.full`, `FileError`.
    func append(_ line: [UInt8]) throws {
        let length = Int64(line.count) + 2
        let room = Room(files: Cost.file(length))
        guard footprint.reserve(room) == .granted else { throw DataStoreError.full }
        defer { footprint.release(room) }
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
