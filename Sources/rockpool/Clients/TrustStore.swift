// The trust stores of this machine, and how Rockpool's authority is added to and removed from them.
import Foundation
import RockpoolNetwork

/// One trust store.
protocol TrustStore: Sendable {
    /// The kind, as in `--store`: `system`, `nss` or `java`.
    var kind: TrustStoreKind { get }
    /// The path of the store, for display.
    var place: String { get }
    /// True if the store trusts this authority.
    func holds(_ authority: AuthorityFiles) -> Bool
    /// Adds the authority and replaces an earlier one of Rockpool.
    func install(_ authority: AuthorityFiles) throws(CommandFailure)
    /// Removes any authority of Rockpool; does nothing if there is none.
    func remove() throws(CommandFailure)
}
