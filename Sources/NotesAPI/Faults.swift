// Everything that can be made to go wrong at the notes API: the upstream modes of outbox.md §3.2.
package import HTTPTypes
package import RockpoolCore

/// Faults in force. Counters say how many of the coming writes they befall and count down; the rest hold until they are cleared.
package struct Faults: Hashable, Sendable {
    /// Writes applied whose answer is dropped with the connection.
    package var commitThenDrop = 0
    /// Writes applied and then answered 500.
    package var failAfterCommit = 0
    /// Writes whose connection is dropped before they are applied.
    package var dropBeforeCommit = 0
    /// Of 100 writes so many lose their connection: every second one of them after it was applied.
    package var lossPercent = 0
    /// Writes answered 409 as if a request with the same key still ran.
    package var claimRunning = 0
    /// Writes are applied only this long after they arrived, also when their client is gone by then.
    package var commitDelay: TimeSpan?
    /// Every answer is held back this long after its request was carried out.
    package var answerDelay: TimeSpan?
    /// Bodies come in pieces of a few bytes, this far apart.
    package var trickle: TimeSpan?
    /// Answered in place of the API, for as many requests as it says.
    package var canned: CannedAnswer?
    /// Keys are neither looked up nor kept.
    package var ignoresKeys = false
    /// Keys are forgotten this long after their first use.
    package var forgetsKeysAfter: TimeSpan?
    /// ETags are sent weak, so that no `If-Match` holds.
    package var weakensETags = false
    /// 201 comes without `Location`.
    package var omitsLocation = false
    /// A DELETE of what is already deleted is 404, its key notwithstanding; else it is 204 again.
    package var deleteAgainIsNotFound = false
    /// Changes and private reads need a live token, else 401.
    package var requiresToken = false
    /// Something answers in the API's place.
    package var portal: Portal?
    /// 503 for everything under `/v1/`.
    package var maintenance: Maintenance?

    package init() {}

    /// A captive portal.
    package enum Portal: Hashable, Sendable {
        /// 200 with a page.
        case page
        /// 302 to this URL.
        case redirect(String)
    }

    /// Why everything is 503.
    package struct Maintenance: Hashable, Sendable {
        /// The value of `Retry-After`, seconds or an HTTP-date; none when nil.
        package var retryAfter: String?

        package init(retryAfter: String? = nil) { self.retryAfter = retryAfter }
    }

    /// One answer for requests under `/v1/`, whatever they ask.
    package struct CannedAnswer: Hashable, Sendable {
        /// Requests it is given to.
        package var times: Int
        /// Only requests with these methods; empty means any.
        package var methods: Set<HTTPRequest.Method>
        /// What is answered.
        package var reply: NotesReply

        package init(status: Int, fields: HTTPFields = [:], body: String = "", methods: Set<HTTPRequest.Method> = [], times: Int = .max) {
            self.times = times
            self.methods = methods
            reply = NotesReply(status: status, fields: fields, body: Array(body.utf8))
        }
    }
}

extension Faults {
    /// Whether a counted fault befalls this request; counts it down.
    mutating func spend(_ counter: WritableKeyPath<Faults, Int>) -> Bool {
        guard self[keyPath: counter] > 0 else { return false }
        self[keyPath: counter] -= 1
        return true
    }

    /// What becomes of the connection of the request numbered `sequence`.
    enum Loss { case none, before, after }

    func loss(of sequence: Int) -> Loss {
        // Spread without a pattern (Fibonacci hashing), and the same in every run.
        let spread = UInt64(truncatingIfNeeded: sequence) &* 0x9E37_79B9_7F4A_7C15 >> 40
        guard lossPercent > 0, spread % 100 < UInt64(lossPercent) else { return .none }
        return spread % 2 == 0 ? .before : .after
    }

    /// The answer that comes before the API is even asked.
    mutating func interception(of request: NotesRequest) -> NotesReply? {
        switch portal {
        case .page: return .html("<!doctype html><title>Welcome</title><p>Accept the terms to go online.</p>")
        case .redirect(let url): return NotesReply(status: 302, fields: [.location: url])
        case nil: break
        }
        guard request.path.hasPrefix("/v1/") else { return nil }
        if let maintenance {
            let fields: HTTPFields = maintenance.retryAfter.map { [.retryAfter: $0] } ?? [:]
            return .problem(503, "maintenance", "The API is being worked on.", fields: fields)
        }
        if var answer = canned, answer.times > 0, answer.methods.isEmpty || answer.methods.contains(request.method) {
            answer.times -= 1
            canned = answer.times > 0 ? answer : nil
            return answer.reply
        }
        return nil
    }

    /// What the faults make of an answer's fields.
    func altered(_ reply: NotesReply) -> NotesReply {
        var reply = reply
        if weakensETags, let etag = reply.fields[.eTag], !etag.hasPrefix("W/") { reply.fields[.eTag] = "W/" + etag }
        if omitsLocation, reply.status == 201 { reply.fields[.location] = nil }
        return reply
    }
}
