// Progress of a cleanup, for a client that waits for it (docs/reference/admin-api.md#storage).

/// The steps of a cleanup, in the order of a whole run; the names occur in a report's `errors`.
enum CleanupStep: String, CaseIterable, Sendable {
    case cache, recency, expired, assets, orphans, temporaries, kept, compaction, audit
    case cacheAfter = "cache after"
    case data, operations, log, attempts, credentials, blobs
    case dataCompaction = "compaction of the outbox"
    case lastCleanup = "last cleanup"
    case dataAfter = "data after"
}

/// The progress of a run.
package struct CleanupProgress: Hashable, Sendable {
    /// The name of the current step.
    package let step: String
    /// Number of completed steps, and of steps in a whole run.
    package let done: Int
    package let of = CleanupStep.allCases.count
    /// Entries removed from the cache so far.
    package var removed: RemovalCount

    init(_ step: CleanupStep, removed: RemovalCount) {
        self.step = step.rawValue
        done = CleanupStep.allCases.firstIndex(of: step) ?? 0
        self.removed = removed
    }
}

/// Called at every step and for every removed batch.
package typealias CleanupWatch = @Sendable (CleanupProgress) -> Void
