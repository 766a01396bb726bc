// The identity of a lane (docs/outbox.md#lanes).

/// A lane and its upstream: two upstreams may use the same lane name.
///
/// It is the hash of both, because a hundred thousand lanes may wait. Two lanes with one hash would wait for each other, and nothing worse.
package struct LaneID: Hashable, Sendable {
    private let hash: Int

    package init(upstream: String, lane: String) {
        var hasher = Hasher()
        hasher.combine(upstream)
        hasher.combine(lane)
        hash = hasher.finalize()
    }
}
