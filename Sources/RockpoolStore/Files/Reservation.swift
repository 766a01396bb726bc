// Bytes promised by the ledger, given back when nobody took them (storage.md §2).
import RockpoolCore
import Synchronization

/// Room that a writer holds. What has not been taken when it goes is released.
final class Reservation: Sendable {
    private let footprint: Footprint
    private let held: Mutex<Room>

    /// Of what the ledger has granted.
    init(granted: Room, of footprint: Footprint) {
        self.footprint = footprint
        held = Mutex(granted)
    }

    var bytes: Int64 { held.withLock(\.bytes) }

    func grow(by granted: Room) { held.withLock { $0 = $0 + granted } }

    /// Hands the room over to who will settle it.
    func take() -> Room {
        held.withLock { held in
            defer { held = Room() }
            return held
        }
    }

    deinit { footprint.release(take()) }
}

/// What things are going to take, rounded up: a reservation too large costs nothing once settled.
enum Cost {
    private static let block: Int64 = 4096

    /// Allocated bytes of a file: its blocks, and the blocks that map them on file systems without extents.
    static func file(_ length: Int64) -> Int64 {
        let blocks = length / block + 1
        return (blocks + blocks / 1000 + 1).multipliedClamped(by: block)
    }

    /// A row of `length` bytes: its pages once in the log and once in the file, with those of the indexes that it may split; in a
    /// small store, limited to `limit` bytes, these have few.
    static func row(_ length: Int64, within limit: Int64 = .max) -> Int64 {
        let splits = min(14, max(4, limit / 2_097_152))
        return (2 * (length / StoreDatabase.pageSize + 1) + splits).multipliedClamped(by: StoreDatabase.frameSize)
    }
}
