// Failures caused by Rockpool or the client, not by the upstream.
package import RockpoolCore

extension TransferFailure {
    /// The client that requested the response has left.
    package static let cancelled = TransferFailure(kind: .cancelled, sent: .maybe, detail: "nobody waits for the answer any more")
}
