// The report of a pull (docs/reference/admin-api.md#sync `POST /v1/sync/pull`).
import RockpoolCore

/// The report of one run of the puller.
package struct PullReport: Hashable, Sendable {
    /// The pull of one resource for one principal.
    package struct Scope: Hashable, Sendable {
        package var upstream: String
        /// The path of its collection.
        package var resource: String
        /// True if a credential was used.
        package var isPrivate: Bool
        /// True if the full listing was read.
        package var isFull = false
        package var requests = 0
        /// The number of entities that the upstream reported as changed, and as deleted.
        package var changed = 0
        package var gone = 0
        /// The number of cache entries that were updated, removed, and invalidated.
        package var written = 0
        package var removed = 0
        package var invalidated = 0
        /// Changes of entities with pending writes, held back until those writes have ended.
        package var withheld = 0
        package var conflictsAhead = 0
        /// The reason of an early end; the cursor then stays, and the next run repeats the pull.
        package var error: String?

        init(_ scope: PullScope) {
            upstream = scope.source.upstream.name
            resource = scope.source.resource.collection
            isPrivate = scope.principal != nil
        }

        mutating func count(_ outcome: DeltaOutcome, _ applied: PullApplication.Applied) {
            isFull = outcome.isFull
            requests = outcome.pages
            changed = applied.present.count
            gone = applied.gone.count
            (written, removed, invalidated) = (applied.written, applied.removed, applied.invalidated)
            (withheld, conflictsAhead) = (applied.withheld.count, applied.conflicts.count)
        }
    }

    package var scopes: [Scope] = []
}
