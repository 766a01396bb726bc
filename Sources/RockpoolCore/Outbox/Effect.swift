// What a look at the upstream says about an operation whose answer was lost (outbox.md §1.3 *uncertain*, §2.4).

/// Whether an operation's effect is there.
package enum Effect: Hashable, Sendable {
    /// It is, and this is what a create became.
    case present(ServerMapping?)
    /// It is not, and cannot come any more: what was sent had a condition that no longer holds.
    case absent
    /// Nobody can tell, or cannot tell yet.
    case unknown
}
