// A reserve of disk space, released when the disk is full, so that outcomes can still be recorded (docs/storage.md#durability).
import Glibc
import RockpoolCore

/// The preallocated file `reserve`. It counts against the limit.
struct ReserveFile: Sendable {
    private let directory: String
    private var path: String { "\(directory)/reserve" }
    /// Bytes: the smaller of 32 MiB and a tenth of the limit.
    let size: Int64
    private let footprint: Footprint

    init(directory: String, size: Int64, footprint: Footprint) {
        self.directory = directory
        self.size = size
        self.footprint = footprint
        footprint.addFixed(allocated)
    }

    var allocated: Int64 { FileStatus.of(path)?.allocated ?? 0 }

    /// Creates or completes the file if it is incomplete and there is space for it.
    func fill(minFree: Int64) {
        let before = allocated
        let ledger = footprint.ledger
        let missing = size - before
        guard missing > 0, FileStatus.of(path)?.size != size else { return }
        guard ledger.used + ledger.reserved + missing <= ledger.limit, FreeSpace.bytes(at: directory) - missing > minFree else { return }
        if let file = try? Descriptor(path, O_WRONLY | O_CREAT) { try? file.allocate(size) }
        footprint.addFixed(allocated - before)
    }

    /// Releases the reserve.
    /// - Returns: true if it existed.
    func giveUp() -> Bool {
        let before = allocated
        guard before > 0, Paths.remove(path) else { return false }
        footprint.addFixed(-before)
        return true
    }
}
