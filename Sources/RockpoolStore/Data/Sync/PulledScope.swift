// The state of one pulled collection.
package import RockpoolCore

/// The progress of one identity's pull of one resource.
package struct PulledScope: Hashable, Sendable {
    /// `upstream|collection|identity`.
    package var name: String
    /// Where the next pull continues; nil lists everything.
    package var cursor: DeltaCursor?
    /// The time of the last complete pull.
    package var syncedAt: Timestamp?
    /// The time of the last full listing.
    package var fullAt: Timestamp?
    /// Number of entities at the upstream, if known.
    package var serverCount: Int?

    package init(
        name: String, cursor: DeltaCursor? = nil, syncedAt: Timestamp? = nil, fullAt: Timestamp? = nil, serverCount: Int? = nil
    ) {
        self.name = name
        self.cursor = cursor
        self.syncedAt = syncedAt
        self.fullAt = fullAt
        self.serverCount = serverCount
    }
}
