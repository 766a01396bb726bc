// Settings of a request that a route, an upstream or the defaults for undeclared hosts may have (docs/reference/configuration.md#defaults).

extension Configuration {
    /// What becomes of a fetch whose client leaves: as the route says, else as the upstream or the defaults for undeclared hosts say; nil: the
    /// built-in bounds.
    package func onAbort(of plan: RoutePlan) -> AbortRule? { plan.route?.onAbort ?? setting(of: plan, \.onAbort, \.onAbort) }

    /// The staleness up to which a response is served in place of an error, by the same order; nil: as the response says.
    package func staleOnError(of plan: RoutePlan) -> TimeSpan? {
        plan.route?.staleOnError ?? setting(of: plan, \.staleOnError, \.staleOnError)
    }

    private func setting<Value>(
        of plan: RoutePlan, _ own: KeyPath<Upstream, Value>, _ shared: KeyPath<DefaultSettings, Value>
    ) -> Value {
        if let upstream = plan.upstream, upstream.isDeclared { return upstream[keyPath: own] }
        return defaults[keyPath: shared]
    }
}
