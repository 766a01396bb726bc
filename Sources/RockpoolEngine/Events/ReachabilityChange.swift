// A change of reachability, as events and the log publish it.
package import RockpoolCore

/// A change of one upstream's state, for publication.
package struct ReachabilityChange: Equatable, Sendable {
    package var upstream: String
    package var from: Reachability.State
    package var to: Reachability.State

    package init(upstream: String, from: Reachability.State, to: Reachability.State) {
        self.upstream = upstream
        self.from = from
        self.to = to
    }
}
