// The record of one exchange, step by step, read by the header fields, the access log and the counters (docs/architecture.md#journeys).
package import RockpoolCore

/// The record of one exchange. Every step is appended here and stored nowhere else.
package struct Trace: Sendable {
    /// One step of the pipeline.
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

    /// The outcome, by which the counters count.
    package enum Verdict: String, CaseIterable, Sendable {
        case hit, stale, revalidated, collapsed, miss, pass, queued, refused, failed
    }

    package let method: String
    package let url: String
    package let startedAt: Timestamp
    package private(set) var steps: [Step] = []
    package var verdict = Verdict.pass
    /// Rockpool's member of `Cache-Status`.
    package var cacheStatus: CacheStatus?
    /// Rockpool's member of `Proxy-Status`, if it made the reply itself or served one in the upstream's place.
    package var proxyStatus: ProxyStatus?

    /// When the request for the served upstream response was sent; nil when the reply contains none.
    package var fetchedAt: Timestamp?

    package init(method: String, url: String, startedAt: Timestamp) {
        self.method = method
        self.url = url
        self.startedAt = startedAt
    }

    package mutating func record(_ step: Step) { steps.append(step) }
}
