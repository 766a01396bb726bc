// The request budget of an upstream (docs/caching.md#budgets).

/// How many requests an upstream may get.
package struct RateLimitRule: Hashable, Sendable {
    /// Requests within `per`; nil: only what the upstream announces.
    package var requests: Int?
    package var per = TimeSpan.minutes(1)

    package init(requests: Int? = nil, per: TimeSpan = .minutes(1)) {
        self.requests = requests
        self.per = per
    }
}

/// Whether the connection to an upstream is metered.
package enum MeteredRule: String, CaseIterable, Hashable, Sendable {
    /// As NetworkManager says.
    case auto
    case yes = "true"
    case no = "false"
}

/// The purpose of a request, by which it keeps away from the rest of a budget.
package enum RequestPurpose: Hashable, Sendable, CaseIterable {
    /// A client waits for it.
    case live
    /// A queued write.
    case replay
    /// A refresh that no client waits for.
    case refresh
    case pull, prefetch

    /// The part of the budget in percent that is left to others.
    package var reservePercent: Int {
        switch self {
        case .live, .replay: 0
        case .refresh: 20
        case .pull, .prefetch: 50
        }
    }
}
