// What happened to one exchange, step by step; the headers, the access log and the counters all read it (docs/architecture.md#journeys).
package import RockpoolCore

/// The record of one exchange. Every step appends; nothing else remembers.
package struct Trace: Sendable {
    /// One thing that happened, in the pipeline's own verbs.
    package enum Step: Sendable, Equatable {
        case routed(upstream: String?, category: String?, strategy: Strategy)
        case looked(candidates: Int)
        case decided(String)
        case fetched(status: Int)
        case failed(TransferFailure)
        case stored
        case notStored(String)
        case enqueued(operation: String)
        case refused(problem: String)
    }

    /// How it ended, as the counters know it.
    package enum Verdict: String, CaseIterable, Sendable {
        case hit, stale, revalidated, collapsed, miss, pass, queued, refused, failed
    }

    package let method: String
    package let url: String
    package let startedAt: Timestamp
    package private(set) var steps: [Step] = []
    package var verdict = Verdict.pass
    /// Our member of `Cache-Status`.
    package var cacheStatus: CacheStatus?
    /// Our member of `Proxy-Status`, when we made the reply or served it in the upstream's place.
    package var proxyStatus: ProxyStatus?

    /// When the request left that what is served answers; nil when nothing of the upstream's is.
    package var fetchedAt: Timestamp?

    package init(method: String, url: String, startedAt: Timestamp) {
        self.method = method
        self.url = url
        self.startedAt = startedAt
    }

    package mutating func record(_ step: Step) { steps.append(step) }
}
