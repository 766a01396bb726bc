// Judges whether a probe's response comes from the upstream and is the expected one (docs/reference/behaviour.md#reachability, `probe`,
// captive portals).

/// The result of a probe that was answered.
package enum ProbeVerdict: Hashable, Sendable {
    case expected
    /// The upstream responds, but not as expected.
    case unexpected(status: Int)
    /// Something else responded, for the reason in `detail`.
    case captive(detail: String)
}
