// How far a cleanup is, for who waits at it (contract §1).

/// What a cleanup does, in the order of a whole run; the names stand in a report's `errors`.
enum CleanupStep: String, CaseIterable, Sendable {
    case cache, recency, expired, assets, orphans, temporaries, kept, compaction, audit
    case cacheAfter = "cache after"
    case data, operations, log, attempts, credentials, blobs
    case dataCompaction = "compaction of the outbox"
    case lastCleanup = "last cleanup"
    case dataAfter = "data after"
}

/// A run under way.
package struct CleanupProgress: Hashable, Sendable {
    /// The name of what is done now.
    package let step: String
    /// Steps behind it, and steps of a whole run.
    package let done: Int
    package let of = CleanupStep.allCases.count
    /// What has gone of the cache until now.
    package var removed: RemovalCount

    init(_ step: CleanupStep, removed: RemovalCount) {
        self.step = step.rawValue
        done = CleanupStep.allCases.firstIndex(of: step) ?? 0
        self.removed = removed
    }
}

/// Told of every step, and of every batch that goes.
package typealias CleanupWatch = @Sendable (CleanupProgress) -> Void
