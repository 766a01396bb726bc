// Whose part of the outbox a write takes, and how that changes when an upstream accepts a credential (docs/reference/behaviour.md#shares
// *queue shares*).
import Logging
import RockpoolCore
import RockpoolStore

extension Engine {
    /// What a write of `principal` is counted on, as far as is known now.
    func share(of principal: String?, at upstream: Upstream) -> OutboxShare {
        OutboxShare(
            principal: principal, isProved: credentials.isProved(principal),
            takesCredentials: data.takesCredentials(upstream.name) || !upstream.isDeclared)
    }

    /// Tells the outbox that `upstream` has accepted a credential of `principal`.
    /// - Parameter isNews: Whether it was not known to accept it before.
    func noteProof(of principal: String, at upstream: Upstream, isNews: Bool) async {
        do {
            if !data.takesCredentials(upstream.name), upstream.isDeclared {
                try await data.noteCredentials(at: upstream.name, now: now())
            }
            if isNews { try await data.noteProof(of: principal) }
        } catch { logger.failed("an accepted credential could not be noted in the outbox", error) }
    }

    /// An operation that was taken as unproved while its upstream accepted the credential is none.
    func checkProof(of operation: RockpoolCore.Operation) async {
        guard let principal = operation.principal, operation.isUnproved, credentials.isProved(principal) else { return }
        do { try await data.noteProof(of: principal) } catch { logger.failed("a proof could not be noted in the outbox", error) }
    }
}
