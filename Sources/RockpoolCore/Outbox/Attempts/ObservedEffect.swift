// The result of probing the upstream for an operation with a lost answer (docs/outbox.md#uncertain *uncertain*, §2.4).

/// The presence of an operation's effect at the upstream.
package enum ObservedEffect: Hashable, Sendable {
    /// The effect is present; for a create, with the created entity's mapping.
    case present(ServerMapping?)
    /// The effect is absent and can no longer occur: the sent request had a condition that no longer holds.
    case absent
    /// The effect cannot be determined, or not yet.
    case unknown
}
