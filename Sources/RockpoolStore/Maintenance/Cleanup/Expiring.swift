// An operation that expires (docs/storage.md#cleanup).
import RockpoolCore

/// An unproved operation that expires.
struct Expiring: Sendable {
    var sequence: Int64
    /// Approximate bytes of its row.
    var bytes: Int64
    /// Start of its retention time.
    var since: Timestamp
    /// True if its expiry has been announced since.
    var isAnnounced: Bool
}
