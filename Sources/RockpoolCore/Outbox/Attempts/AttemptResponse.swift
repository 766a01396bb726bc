// Signals in an answer besides its status: a captive portal, an idempotency layer's error (docs/outbox.md#answers).
import HTTPTypes

struct AttemptResponse {
    let head: ResponseHead
    /// The beginning of the body, at most a few KiB.
    let bodyStart: [UInt8]
    let request: RequestHead

    var statusText: String { head.fields[.retryAfter].map { "\(head.status), Retry-After: \($0)" } ?? "\(head.status)" }
    var location: String? { head.fields[.location] }
    /// The location for people, without secrets.
    var shownLocation: String? { location.map { String(SecretParameters.redacted(url: $0).prefix(300)) } }

    /// The sign that the answer did not come from the upstream; nil without one.
    var portal: PortalSuspicion? { PortalSuspicion.judge(head, toWrite: request, bodyStart: bodyStart) }

    /// True if a 409 comes from an idempotency layer while the first request with the key still runs, not from an edit conflict.
    var saysKeyInProgress: Bool { concernsKey || head.fields[.retryAfter] != nil }

    /// True if the body mentions the idempotency key, as the problem documents of the draft, of Stripe and of others do.
    var concernsKey: Bool {
        String(decoding: bodyStart.prefix(.kib(4)), as: UTF8.self).lowercased().contains("idempoten")
    }

    /// OASIS repeatable requests: the key is older than the server's key storage; not an edit conflict.
    var saysFirstSentTooOld: Bool {
        head.fields[.repeatabilityResult]?.lowercased() == "rejected"
    }
}
