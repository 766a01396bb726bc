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

    /// A step and the moment of its end.
    package struct Entry: Sendable {
        package let step: Step
        let at = ContinuousClock.now
        let transfer: TransferClock?
    }

    /// The outcome, by which the counters count.
    package enum Verdict: String, CaseIterable, Sendable {
        case hit, stale, revalidated, collapsed, miss, pass, queued, refused, failed

        /// True if the reply is a stored response that the upstream was not asked about.
        var isFromStore: Bool { self == .hit || self == .stale }
    }

    package let method: String
    package let url: String
    package let startedAt: Timestamp
    /// The steps with their moments.
    package private(set) var entries: [Entry] = []
    package var steps: [Step] { entries.map(\.step) }
    /// The identity of the client; nil before it is known. Never recorded with its secrets.
    var identity: Identity?
    package var verdict = Verdict.pass
    /// Rockpool's member of `Cache-Status`.
    package var cacheStatus: CacheStatus?
    /// Rockpool's member of `Proxy-Status`, if it made the reply itself or served one in the upstream's place.
    package var proxyStatus: ProxyStatus?

    /// Own writes that have ended by then are part of the served response; nil when it is none of the upstream's.
    package var includes: Tick?

    package init(method: String, url: String, startedAt: Timestamp) {
        self.method = method
        self.url = url
        self.startedAt = startedAt
    }

    /// The record of an exchange with another URL that takes the same steps.
    init(_ other: Trace, url: String, startedAt: Timestamp) {
        self = Trace(method: other.method, url: url, startedAt: startedAt)
        (verdict, cacheStatus, identity) = (other.verdict, other.cacheStatus, other.identity)
        for step in other.steps { record(step) }
    }

    /// Appends a step.
    /// - Parameter transfer: the clock of the transfer that the step is about.
    package mutating func record(_ step: Step, transfer: TransferClock? = nil) { entries.append(Entry(step: step, transfer: transfer)) }

    /// Appends a step that was recorded elsewhere for this exchange.
    mutating func append(_ entry: Entry) { entries.append(entry) }
}
