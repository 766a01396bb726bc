// What a hot reply shows of a place that its client may change (docs/outbox.md#sight).
package import RockpoolCore
package import Synchronization

/// A state, who is shown it, and when that was noted last.
package final class Showing: Sendable {
    package let viewer: String?
    package let state: ShownState
    /// The number of changes of the sight after it was noted; the greatest number before.
    package let notedAt = Atomic<UInt64>(.max)

    package init(_ state: ShownState, to viewer: String?) { (self.viewer, self.state) = (viewer, state) }
}
