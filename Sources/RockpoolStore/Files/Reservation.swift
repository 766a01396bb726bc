// Space reserved in the ledger, released when it was not used (docs/storage.md#ledger).
import RockpoolCore
import Synchronization

/// Space held by a writer. The unused part is released on deinit.
final class Reservation: Sendable {
    private let footprint: Footprint
    private let held: Mutex<Room>

    /// - Parameter granted: space that the ledger has already granted.
    init(granted: Room, of footprint: Footprint) {
        self.footprint = footprint
        held = Mutex(granted)
    }

    var bytes: Int64 { held.withLock(\.bytes) }

    func grow(by granted: Room) { held.withLock { $0 = $0 + granted } }

    /// Transfers the space to the caller, which settles it.
    func take() -> Room {
        held.withLock { held in
            defer { held = Room() }
            return held
        }
    }

    deinit { footprint.release(take()) }
}

/// Upper estimates of the space that data takes: an excessive reservation costs nothing once settled.
enum Cost {
    private static let block: Int64 = 4096

    /// Allocated bytes of a file: its blocks, and the blocks that map them on file systems without extents.
    static func file(_ length: Int64) -> Int64 {
        let blocks = length / block + 1
        return (blocks + blocks / 1000 + 1).multipliedClamped(by: block)
    }

    /// Bytes of a row of `length` bytes: its pages once in the log and once in the file, with the index pages that it may split; a small
    /// store (limited to `limit` bytes) has few of these.
    static func row(_ length: Int64, within limit: Int64 = .max) -> Int64 {
        let splits = min(14, max(4, limit / 2_097_152))
        return (2 * (length / StoreDatabase.pageSize + 1) + splits).multipliedClamped(by: StoreDatabase.frameSize)
    }
}
