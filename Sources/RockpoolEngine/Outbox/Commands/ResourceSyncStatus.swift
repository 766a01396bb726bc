// The sync status of one declared resource (docs/reference/admin-api.md#sync `/v1/entities`).
package import RockpoolCore

/// The status of one declared resource.
package struct ResourceSyncStatus: Hashable, Sendable {
    package var upstream: String
    /// The path of its collection.
    package var resource: String
    /// The number of cached entities, as items or within the whole collection, of all principals.
    package var cached = 0
    /// The number of entities at the upstream, by the last pull; nil where no pull has determined it.
    package var serverCount: Int?
    /// The number of open operations, dead ones excluded.
    package var pending = 0
    package var conflicts = 0
    /// The number of entities in each state.
    package var states: [EntityState: Int] = [:]
    package var strategy = Resource.Conflict.fieldMerge
    /// JSON Pointer → field strategy.
    package var fields: [String: String] = [:]
    /// The time of the last pull.
    package var lastSync: Timestamp?
}
