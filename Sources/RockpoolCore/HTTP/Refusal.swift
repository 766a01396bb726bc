// The reason why a message is rejected, with the data of the error response (RFC 9110 §15, RFC 9457; docs/reference/admin-api.md#problems).

/// A message rejected on receipt. Its connection is closed after the error response.
package struct Refusal: Error, Hashable, Sendable {
    /// The status of the error response: 4xx for a client's fault, 502 for an upstream's.
    package var status: Int
    /// The part after `urn:rockpool:problem:` in the `type` of the error response.
    package var problem: String
    /// One readable sentence. Contains no credential, and only short excerpts of the message.
    package var detail: String

    /// Any refusal; the common ones are below.
    package init(status: Int, problem: String, detail: String) {
        self.status = status
        self.problem = problem
        self.detail = detail
    }
}

extension Refusal {
    /// 400: violates the grammar of HTTP or URIs.
    package static func badRequest(_ detail: String) -> Refusal {
        Refusal(status: 400, problem: "bad-request", detail: detail)
    }

    /// 505: a version of HTTP other than 1.0 and 1.1 (RFC 9110 §15.6.6).
    package static let versionNotSupported = Refusal(
        status: 505, problem: "version-not-supported", detail: "only HTTP/1.0 and HTTP/1.1 are supported")

    /// 431: more or longer fields than the limits allow (RFC 6585 §5).
    package static func headTooLarge(_ detail: String) -> Refusal {
        Refusal(status: 431, problem: "head-too-large", detail: detail)
    }

    /// 503: the client has as much under way as it may (docs/security-model.md#shares-of-clients).
    package static let busy = Refusal(
        status: 503, problem: "busy",
        detail: "as much is under way as one client, or all together, may have: try again when some of it has ended")

    /// 502: an upstream's message that must not be forwarded (RFC 9110 §15.6.3).
    package static func badGateway(_ detail: String) -> Refusal {
        Refusal(status: 502, problem: "upstream-error", detail: detail)
    }
}

extension Refusal {
    /// Returns a 422: understood, but not possible (RFC 9110 §15.5.21).
    package static func unprocessable(_ detail: String) -> Refusal {
        Refusal(status: 422, problem: "unprocessable", detail: detail)
    }
}

extension Refusal {
    /// Returns a 409: not possible in this state; the detail contains the reason (docs/reference/admin-api.md#problems).
    package static func conflict(_ detail: String) -> Refusal {
        Refusal(status: 409, problem: "conflict", detail: detail)
    }
}
