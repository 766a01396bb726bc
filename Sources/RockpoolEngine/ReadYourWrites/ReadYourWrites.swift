// Folds queued writes into what reads show (docs/outbox.md#reads).
import RockpoolCore
import RockpoolStore

/// Reads that include the queued writes of their client.
package final class ReadYourWrites: Sendable {
    let cache: CacheStore
    let data: DataStore
    /// Writes that reads must still include.
    let overlay: WriteOverlay
    /// What clients were shown.
    let sight: ClientSight
    let reads: ReadPipeline
    /// The last folded collections.
    let folded = FoldedReads()
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    init(
        cache: CacheStore, data: DataStore, overlay: WriteOverlay, sight: ClientSight, reads: ReadPipeline, active: ActiveConfiguration,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.cache = cache
        self.data = data
        self.overlay = overlay
        self.sight = sight
        self.reads = reads
        self.active = active
        self.now = now
    }
}
