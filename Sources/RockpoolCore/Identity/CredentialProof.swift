// Whether an answer shows that the upstream accepts the credential it was asked with (contract §6, design §5 *Identity*).
import HTTPTypes

/// What makes a token earn its identity.
package enum CredentialProof {
    /// A 2xx or a 304, from the upstream itself: a page where the client asked for none may be a portal's, and proves nothing, even
    /// where nothing stored gives it away.
    package static func isGiven(by answer: ResponseHead, to request: RequestHead) -> Bool {
        guard (200...299).contains(answer.status) || answer.status == 304 else { return false }
        return !MediaType.isPage(answer.fields) || MediaType.isAskedForPages(request)
    }
}
