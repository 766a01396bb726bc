// What a hot reply shows of a place that its client may change (docs/outbox.md#sight).
package import RockpoolCore
package import Synchronization

/// A state, and the identity that is shown it.
package final class Showing: Sendable {
    /// `Viewer.partition`.
    package let partition: String?
    package let state: ShownState
    /// The change of the sight after which it was noted last, and for which program, as one number.
    package let notedAs = Atomic<UInt64>(.max)

    package init(_ state: ShownState, to partition: String?) { (self.partition, self.state) = (partition, state) }
}
