// This node's lease on itself: while it holds, this node may send (docs/fleet.md#leases).

/// The membership of a node. Times are those of its own steady clock, which goes on while the machine sleeps.
struct NodeLease: Sendable, Equatable {
    /// How long the shared database waits for the next renewal before others take over.
    static let length = Duration.seconds(15)
    /// After this time without a renewal, the node stops sending by itself.
    static let trusted = Duration.seconds(12)
    /// Time between two renewals.
    static let interval = Duration.seconds(3)

    let epoch: Int64
    /// Before the query of the last renewal was sent.
    var renewedAt: ContinuousClock.Instant

    /// The moment from which nothing may be sent any more.
    var end: ContinuousClock.Instant { renewedAt + Self.trusted }
}
