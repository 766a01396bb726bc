// Updates the share of the outbox that writes count against when an upstream accepts a credential (docs/reference/behaviour.md#shares
// *queue shares*).
import Logging
import RockpoolCore
import RockpoolStore

extension CredentialRenewal {
    /// Records in the outbox that `upstream` has accepted a credential of `principal`.
    /// - Parameter isNews: true if no acceptance was known before.
    func noteProof(of principal: String, at upstream: Upstream, isNews: Bool) async {
        do {
            if !data.takesCredentials(upstream.name), upstream.isDeclared {
                try await data.noteCredentials(at: upstream.name, now: now())
            }
            if isNews { try await data.noteProof(of: principal) }
        } catch { logger.failed("an accepted credential could not be noted in the outbox", error: error) }
    }

    /// Moves an operation to its principal's share if the upstream accepted the credential while the operation was being stored.
    func checkProof(of operation: QueuedWrite) async {
        guard let principal = operation.principal, operation.isUnproved, credentials.isProved(principal) else { return }
        do { try await data.noteProof(of: principal) } catch { logger.failed("a proof could not be noted in the outbox", error: error) }
    }
}
