// Why a message is not let through, in the terms of the answer it gets (RFC 9110 §15, RFC 9457; contract §5).

/// A message refused at the door. The connection it came on is closed after the answer.
package struct Refusal: Error, Hashable, Sendable {
    /// The status of the answer: 4xx for a client's fault, 502 for an upstream's.
    package var status: Int
    /// What follows `urn:rockpool:problem:` in the answer's `type`.
    package var problem: String
    /// One sentence for people. Never holds a credential; what it quotes of the message is short.
    package var detail: String

    /// Any refusal; the common ones are below.
    package init(status: Int, problem: String, detail: String) {
        self.status = status
        self.problem = problem
        self.detail = detail
    }
}

extension Refusal {
    /// 400: not what the grammar of HTTP or URIs allows.
    package static func badRequest(_ detail: String) -> Refusal {
        Refusal(status: 400, problem: "bad-request", detail: detail)
    }

    /// 431: more fields, or longer ones, than the limits allow (RFC 6585 §5).
    package static func headTooLarge(_ detail: String) -> Refusal {
        Refusal(status: 431, problem: "head-too-large", detail: detail)
    }

    /// 502: an upstream's message that must not be passed on (RFC 9110 §15.6.3).
    package static func badGateway(_ detail: String) -> Refusal {
        Refusal(status: 502, problem: "upstream-error", detail: detail)
    }
}
