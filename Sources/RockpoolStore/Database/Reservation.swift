// Space reserved in the ledger, released when it was not used (docs/storage.md#ledger).
import RockpoolCore
import Synchronization

/// Space held by a writer. The unused part is released on deinit.
final class Reservation: Sendable {
    private let footprint: Footprint
    private let held: Mutex<SpaceRequest>

    /// - Parameter granted: space that the ledger has already granted.
    init(granted: SpaceRequest, of footprint: Footprint) {
        self.footprint = footprint
        held = Mutex(granted)
    }

    var bytes: Int64 { held.withLock { $0.bytes } }

    func grow(by granted: SpaceRequest) { held.withLock { $0 = $0 + granted } }

    /// Transfers the space to the caller, which settles it.
    func take() -> SpaceRequest {
        held.withLock { held in
            defer { held = SpaceRequest() }
            return held
        }
    }

    deinit { footprint.release(take()) }
}
