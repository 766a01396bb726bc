// The faults that tests can inject into the notes API: the upstream modes of docs/outbox.md#faults.
package import HTTPTypes
package import NotesAPI
package import RockpoolCore

/// The faults in force. A counter is the number of coming writes that are affected and counts down; other faults hold until cleared.
package struct Faults: NotesInterference, Hashable {
    /// Writes that are applied, after which the connection is closed without the response.
    package var commitThenDrop = 0
    /// Writes that are applied and then answered 500.
    package var failAfterCommit = 0
    /// Writes that are dropped with their connection before they are applied.
    package var dropBeforeCommit = 0
    /// The percentage of writes that lose their connection, half of them after they were applied.
    package var lossPercent = 0
    /// Writes answered 409 as if a request with the same key were still running.
    package var claimRunning = 0
    /// The time from a write's arrival until it is applied, even if its client has disconnected by then.
    package var commitDelay: TimeSpan?
    /// The time for which every response is held back after its request was carried out.
    package var answerDelay: TimeSpan?
    /// The pause between the pieces of a body, each a few bytes long.
    package var trickle: TimeSpan?
    /// A response sent in place of the API's, for a given number of requests.
    package var canned: CannedAnswer?
    /// Idempotency keys are neither read nor stored.
    package var ignoresKeys = false
    /// The time after its first use at which a key is forgotten.
    package var forgetsKeysAfter: TimeSpan?
    /// ETags are sent weak, so that no `If-Match` matches.
    package var weakensETags = false
    /// 201 is sent without `Location`.
    package var omitsLocation = false
    /// A DELETE of a deleted resource is 404 despite its key; otherwise it is 204 again.
    package var deleteAgainIsNotFound = false
    /// Changes and private reads need a valid token, else they are 401.
    package var requiresToken = false
    /// A captive portal answers in place of the API.
    package var portal: Portal?
    /// Everything under `/v1/` is answered 503.
    package var maintenance: Maintenance?

    package init() {}

    package enum Portal: Hashable, Sendable {
        /// 200 with a page.
        case page
        /// 302 to this URL.
        case redirect(String)
    }

    /// The details of the 503 response.
    package struct Maintenance: Hashable, Sendable {
        /// The value of `Retry-After`, seconds or an HTTP-date; nil sends none.
        package var retryAfter: String?

        package init(retryAfter: String? = nil) { self.retryAfter = retryAfter }
    }

    /// A fixed response for requests under `/v1/`.
    package struct CannedAnswer: Hashable, Sendable {
        /// The number of requests that get it.
        package var times: Int
        /// The affected methods; empty means any.
        package var methods: Set<HTTPRequest.Method>
        package var reply: NotesReply

        package init(status: Int, fields: HTTPFields = [:], body: String = "", methods: Set<HTTPRequest.Method> = [], times: Int = .max) {
            self.times = times
            self.methods = methods
            reply = NotesReply(status: status, fields: fields, body: Array(body.utf8))
        }
    }
}

extension Faults {
    /// Counts a fault down. Returns true if it affects this request.
    private mutating func spend(_ counter: WritableKeyPath<Faults, Int>) -> Bool {
        guard self[keyPath: counter] > 0 else { return false }
        self[keyPath: counter] -= 1
        return true
    }

    /// The time at which request number `sequence` loses its connection, if any.
    private enum Loss { case none, before, after }

    private func loss(of sequence: Int) -> Loss {
        // Fibonacci hashing spreads the losses without a pattern, and identically in every run.
        let spread = UInt64(truncatingIfNeeded: sequence) &* 0x9E37_79B9_7F4A_7C15 >> 40
        guard lossPercent > 0, spread % 100 < UInt64(lossPercent) else { return .none }
        return spread % 2 == 0 ? .before : .after
    }

    /// True for the next of `dropBeforeCommit`, and for a lost request.
    package mutating func dropsBeforeCommit(of sequence: Int) -> Bool { spend(\.dropBeforeCommit) || loss(of: sequence) == .before }

    /// True for the next of `claimRunning`.
    package mutating func claimsRunning() -> Bool { spend(\.claimRunning) }

    /// True for the next of `commitThenDrop`, and for a lost response.
    package mutating func dropsAfterCommit(of sequence: Int) -> Bool { spend(\.commitThenDrop) || loss(of: sequence) == .after }

    /// True for the next of `failAfterCommit`.
    package mutating func failsAfterCommit() -> Bool { spend(\.failAfterCommit) }

    /// The response that replaces the API's, if a portal, maintenance or a canned response is in force.
    package mutating func interception(of request: NotesRequest) -> NotesReply? {
        switch portal {
        case .page: return .html("<!doctype html><title>Welcome</title><p>Accept the terms to go online.</p>")
        case .redirect(let url): return NotesReply(status: 302, fields: [.location: url])
        case nil: break
        }
        guard request.path.hasPrefix("/v1/") else { return nil }
        if let maintenance {
            let fields: HTTPFields = maintenance.retryAfter.map { [.retryAfter: $0] } ?? [:]
            return .problem(503, about: "maintenance", detail: "The API is being worked on.", fields: fields)
        }
        if var answer = canned, answer.times > 0, answer.methods.isEmpty || answer.methods.contains(request.method) {
            answer.times -= 1
            canned = answer.times > 0 ? answer : nil
            return answer.reply
        }
        return nil
    }

    /// Applies the faults to a response's fields.
    package func altered(_ reply: NotesReply) -> NotesReply {
        var reply = reply
        if weakensETags, let etag = reply.fields[.eTag], !etag.hasPrefix("W/") { reply.fields[.eTag] = "W/" + etag }
        reply.delay = reply.delay + (answerDelay ?? .zero)
        if omitsLocation, reply.status == 201 { reply.fields[.location] = nil }
        return reply
    }
}
