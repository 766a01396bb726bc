// Failures that are our own doing or the client's, not the upstream's.
package import RockpoolCore

extension TransferFailure {
    /// Whoever wanted the answer has left.
    package static let cancelled = TransferFailure(kind: .cancelled, sent: .maybe, detail: "nobody waits for the answer any more")
}
