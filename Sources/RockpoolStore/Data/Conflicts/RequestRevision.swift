// The request that replaces a conflicted one.
package import RockpoolCore

/// The next revision of an operation. Its id, place, principal, client key and fingerprint stay those it was accepted with.
package struct RequestRevision: Hashable, Sendable {
    package var request: RequestHead
    /// A blob must be finished; the operation references it from now on.
    package var body: OperationBody
    /// A new key: no key is used with two payloads.
    package var idempotencyKey: String
    /// The new base: theirs. At most 1 MiB.
    package var base: Conflict.Side?
    /// The strong ETag of theirs; nil where it has none.
    package var baseETag: String?
    /// True if the result differs from the operation's intent: later operations built on it then lose their base.
    package var differsFromMine: Bool

    package init(
        request: RequestHead, body: OperationBody, idempotencyKey: String, base: Conflict.Side?, baseETag: String?, differsFromMine: Bool
    ) {
        self.request = request
        self.body = body
        self.idempotencyKey = idempotencyKey
        self.base = base
        self.baseETag = baseETag
        self.differsFromMine = differsFromMine
    }
}
