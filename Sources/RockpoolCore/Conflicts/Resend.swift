// The request that a decided conflict sends.

/// A request that replaces one that met a conflict, or that undoes one.
package struct Resend: Hashable, Sendable {
    /// The request with the precondition for the current state, without credential and idempotency key.
    package var request: RequestHead
    package var body: [UInt8]
    /// `weak` where the request carries no condition that the upstream could check: then the upstream is read again just before sending.
    package var detection: Conflict.Detection

    package init(request: RequestHead, body: [UInt8], detection: Conflict.Detection) {
        self.request = request
        self.body = body
        self.detection = detection
    }
}
