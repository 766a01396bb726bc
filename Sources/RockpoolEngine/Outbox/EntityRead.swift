// The result of reading an entity from its upstream (docs/outbox.md#detection).
import RockpoolCore

/// The result of reading an entity from the upstream.
enum EntityRead: Sendable {
    /// - Parameter skew: the upstream's clock minus the proxy's clock.
    case shown(ConflictCase.Theirs, skew: TimeSpan)
    /// The upstream answered without the entity's state, for example with 401, 405 or 500.
    case refused(status: Int)
    case failed(TransferFailure)

    /// True if a refusal may pass: a failure, a limited rate, or a body that broke off.
    static func mayPass(_ status: Int) -> Bool { status >= 500 || status == 429 || status == 200 }
}
