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
    let itemsBefore: ItemsBefore
    /// The last folded collections.
    let folded: FoldedReads
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    init(
        cache: CacheStore, data: DataStore, overlay: WriteOverlay, sight: ClientSight, reads: ReadPipeline,
        itemsBefore: ItemsBefore, folded: FoldedReads, active: ActiveConfiguration, now: @escaping @Sendable () -> Timestamp
    ) {
        self.cache = cache
        self.data = data
        self.overlay = overlay
        self.sight = sight
        self.reads = reads
        self.itemsBefore = itemsBefore
        self.folded = folded
        self.active = active
        self.now = now
    }
}
