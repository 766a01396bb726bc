// Decides whether a response proves that the upstream accepts the request's credential (docs/reference/behaviour.md#identity,
// docs/caching.md#partitions *Identity*).
import HTTPTypes

/// The proof that a token belongs to its claimed identity.
package enum CredentialProof {
    /// True for a 2xx or a 304 from the upstream itself. A page that the client did not request may come from a portal and proves nothing,
    /// even if no stored response contradicts it.
    package static func isGiven(by answer: ResponseHead, to request: RequestHead) -> Bool {
        guard (200...299).contains(answer.status) || answer.status == 304 else { return false }
        return !MediaType.isPage(answer.fields) || MediaType.isAskedForPages(request)
    }
}
