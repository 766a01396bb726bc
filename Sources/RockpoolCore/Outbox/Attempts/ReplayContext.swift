// An upstream's settings for resending, the keys that make it safe (docs/outbox.md#resend-rule; RFC 9110 §9.2.2), and the delay before
// the next attempt (docs/outbox.md#backoff).
package import HTTPTypes

/// How an answer of 2xx to one operation is read.
package struct AnswerReading: Hashable, Sendable {
    /// The declared rule; nil without one.
    package var success: SuccessRule?
    /// True if the answer's body describes something else than the entity of the write (`AnsweredWrite.isForeign`).
    package var isForeign: Bool
    /// True if the request ends its client's session, so that a redirect to a login page is a success.
    package var isLogout: Bool
    /// True if the answer was found to be the upstream's own, whatever signs of a portal it shows (docs/outbox.md#portals).
    package var isJudged = false
    /// True if the answer redirects to an item or a collection of the write's declared resource.
    package var namesEntity = false
    /// True if the upstream has redirected writes of another form to the same place, which is none of theirs.
    var isCommonPlace = false
    /// False if nothing shows that the upstream has ever had what the write changes.
    package var knowsEntity = true
    /// True if the upstream has applied a write since it became reachable.
    var hasEffect = true

    /// Creates the reading of an answer whose status alone matters, unless arguments say otherwise.
    package init(success: SuccessRule? = nil, isForeign: Bool = false, isLogout: Bool = false) {
        self.success = success
        self.isForeign = isForeign
        self.isLogout = isLogout
    }
}

/// The settings that a disposition depends on besides the operation and its attempt.
package struct ReplayContext: Hashable, Sendable {
    /// The number of probes for an operation's effect before its policy applies.
    package static let probes = 3

    /// The upstream's support of idempotency keys.
    package var idempotency: IdempotencySettings
    /// The policy for an operation with an effect that stays unknown.
    package var uncertainPolicy: QueueSettings.Uncertain
    /// The longest time for which an unknown effect is looked for, and holds what builds on it.
    package var uncertainHold = TimeSpan.seconds(60)
    /// The limit of answered attempts; an operation that exceeds it becomes dead.
    package var answeredLimit: Int
    /// How the answer to this operation is read; set for each attempt.
    package var reading = AnswerReading()

    package init(idempotency: IdempotencySettings, uncertainPolicy: QueueSettings.Uncertain = .ask, answeredLimit: Int = 10) {
        self.idempotency = idempotency
        self.uncertainPolicy = uncertainPolicy
        self.answeredLimit = answeredLimit
    }

    /// The context of an upstream's settings.
    package init(_ upstream: Upstream) {
        self.init(
            idempotency: upstream.idempotency, uncertainPolicy: upstream.queue.uncertain, answeredLimit: upstream.queue.maxAttempts)
        uncertainHold = upstream.queue.uncertainHold
    }

    /// True if a resend of the operation cannot add a second effect: its method is idempotent, it applies only to the version that its
    /// client saw, or the upstream honours its key and still stores it; or if a second effect is nothing to worry about, as of telemetry. The
    /// key's lifetime starts at the first send, not at acceptance; `honoured: unknown` counts as no.
    package func permitsResend(of operation: QueuedWrite, now: Timestamp) -> Bool {
        operation.isVersioned || operation.isTelemetry
            || permitsResend(method: operation.request.method, firstSentAt: operation.firstSentAt, now: now)
    }

    /// The same, from the method and the time of the first send.
    package func permitsResend(method: HTTPRequest.Method, firstSentAt: Timestamp?, now: Timestamp) -> Bool {
        if method.isIdempotent { return true }
        guard idempotency.honoured == .yes else { return false }
        guard let firstSentAt else { return true }
        // A first send in the future was recorded before the clock was set back; if by more than the key's lifetime, its age is unknown.
        return (now - firstSentAt).magnitude < idempotency.ttl
    }

    /// Returns the time of the next probe after `probes` probes: the first soon, the others spread over the time the request may still run,
    /// and no longer than `uncertainHold`. After the last one it is the time at which the policy applies: not before the request has ended.
    package func nextProbe(after probes: Int, now: Timestamp) -> Timestamp {
        let longest = idempotency.maxProcessing
        let first = min(.seconds(1), longest, uncertainHold)
        if probes == 0 { return now + first }
        let whole = longest.milliseconds.multipliedClamped(by: Int64(Self.probes)) / 2
        if probes < Self.probes {
            return now
                + TimeSpan(milliseconds: min(longest.milliseconds / 2, (uncertainHold - first).milliseconds / Int64(Self.probes - 1)))
        }
        let looked = min(longest.milliseconds.multipliedClamped(by: Int64(Self.probes - 1)) / 2, uncertainHold.milliseconds)
        return now + TimeSpan(milliseconds: max(longest.milliseconds / 2, whole - looked))
    }

    /// Returns until when the lane must wait after the operation has ended, because its last lost attempt may still take effect and undo
    /// the next write (docs/outbox.md#resend-rule, the zombie attempt). Nil when no attempt was lost, or the effect is prevented: by a
    /// condition, or by
    /// an honoured key where a later attempt was answered. For an operation that was given up, a key prevents nothing. A POST to an
    /// undeclared path undoes no other write.
    package func holdsLane(after operation: QueuedWrite, isDelivered: Bool, now: Timestamp) -> Timestamp? {
        if operation.isConditional || operation.isEntityOfItsOwn || isDelivered && idempotency.honoured == .yes { return nil }
        return operation.lostAt.map { mayRunUntil(lostAt: $0, now: now) }
    }

    /// Returns until when an attempt may still take effect. A `lostAt` in the future was recorded before the clock was set back.
    func mayRunUntil(lostAt: Timestamp, now: Timestamp) -> Timestamp { min(lostAt, now) + idempotency.maxProcessing }

    /// True if it must be sent on a fresh connection: on a reused one, a close before the answer does not show whether the upstream
    /// processed the request.
    package func needsFreshConnection(for operation: QueuedWrite, now: Timestamp) -> Bool {
        !permitsResend(of: operation, now: now)
    }
}

extension QueuedWrite {
    /// True for a POST to an undeclared path, which creates or does something: no other write is about its entity.
    package var isEntityOfItsOwn: Bool { request.method == .post && collection == nil }

    /// True if the upstream applies it only to the state the client saw (RFC 9110 §13.1).
    var isConditional: Bool { request.fields.contains(.ifMatch) || request.fields.contains(.ifNoneMatch) || isVersioned }

    /// True if every attempt names the version that it changes, so that a second one is refused after the first has taken effect. A
    /// condition of the client's own, or the base's ETag, which sending makes one (docs/outbox.md#detection).
    package var isVersioned: Bool {
        guard [.put, .patch, .delete].contains(request.method) else { return false }
        return EntityTag.condition(in: request.fields[.ifMatch]) != nil || baseETag != nil && !request.fields.contains(.ifMatch)
    }
}

// MARK: - Keys

/// Writes keys as field values and parses them (docs/outbox.md#keys; draft-ietf-httpapi-idempotency-key-header).
package enum IdempotencyKey {
    /// Bytes of a client's key at most: longer ones would not fit into the indexes of databases.
    package static let lengthLimit = 255

    /// Returns the field value for `key`: a structured-field String, or the bare key as Stripe expects it.
    package static func fieldValue(_ key: String, format: IdempotencySettings.Format) -> String {
        switch format {
        case .raw: key
        case .quoted where !key.utf8.contains { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }: "\"\(key)\""
        case .quoted: "\"" + key.escaping(["\\": "\\\\", "\"": "\\\""]) + "\""
        }
    }

    /// Parses the key in either format; nil when empty. What is no quoted string alone is the key as it is.
    package static func parse(_ fieldValue: String) -> String? {
        var rest = fieldValue.unicodeScalars[...]
        guard rest.popFirst() == "\"" else { return fieldValue.isEmpty ? nil : fieldValue }
        var key = String.UnicodeScalarView()
        var isEscaped = false
        while let scalar = rest.popFirst() {
            if isEscaped {
                key.append(scalar)
                isEscaped = false
            } else if scalar == "\\" {
                isEscaped = true
            } else if scalar == "\"" {
                guard rest.isEmpty else { return fieldValue }
                return key.isEmpty ? nil : String(key)
            } else {
                key.append(scalar)
            }
        }
        return fieldValue
    }
}

extension IdempotencySettings {
    /// The field that carries the key; `Idempotency-Key` if `header` is no field name, which the configuration excludes.
    package var name: HTTPField.Name { HTTPField.Name(header) ?? .idempotencyKey }
}

extension RequestHead {
    /// The client's own key in the field that the upstream reads; nil without one.
    package func clientKey(for settings: IdempotencySettings) -> String? { fields[settings.name].flatMap { IdempotencyKey.parse($0) } }

    /// Sets the operation's key in the field that the upstream reads. A client's own key in that field is left unchanged.
    package mutating func setKey(_ key: String, isClients: Bool, for settings: IdempotencySettings) {
        if isClients, fields.contains(settings.name) { return }
        guard settings.honoured != .no else { return }
        fields[settings.name] = IdempotencyKey.fieldValue(key, format: settings.format)
    }
}

// MARK: - Delays

/// Computes delays between attempts. `random` is a uniform value in 0..<1, given by the caller.
package enum Backoff {
    /// The upper bound of the first delay.
    package static let base = TimeSpan.milliseconds(500)
    /// The upper bound of delays after an answer.
    package static let cap = TimeSpan.seconds(60)
    /// The cap while requests do not reach the upstream, so that a returning upstream is served within five seconds.
    package static let unsentCap = TimeSpan.seconds(2)
    /// The cap after a lost answer when a resend is safe.
    package static let lostCap = TimeSpan.seconds(10)
    /// The minimum delay when throttled: full jitter alone can be near zero.
    package static let throttleFloor = TimeSpan.seconds(1)
    /// The maximum jitter added to the floor.
    package static let throttleCap = TimeSpan.seconds(8)
    /// The longest accepted `Retry-After`; a server's mistake must not block a queue for ever.
    package static let retryAfterCap = TimeSpan.hours(24)
    /// The maximum jitter added to a `Retry-After`.
    private static let retryAfterSpread = TimeSpan.seconds(30)
    /// The longest possible delay.
    package static let longest = retryAfterCap + retryAfterSpread

    /// Full jitter: uniform in 0 … min(`cap`, `base` · 2^`attempt`), `attempt` counted from 0.
    package static func fullJitter(attempt: Int, cap: TimeSpan = Backoff.cap, random: Double) -> TimeSpan {
        let doublings = min(max(attempt, 0), 32)
        let ceiling = min(cap.milliseconds, base.milliseconds.multipliedClamped(by: 1 << Int64(doublings)))
        return .milliseconds(portion(of: ceiling, random: random))
    }

    /// Returns the time of the retry after 429, 503 and similar: at `retryAfter` when the upstream named a time, otherwise after the floor;
    /// jitter only lengthens the delay.
    package static func throttled(until retryAfter: Timestamp?, attempt: Int, now: Timestamp, random: Double) -> Timestamp {
        guard let retryAfter else {
            return now + throttleFloor + fullJitter(attempt: attempt, cap: throttleCap, random: random)
        }
        let wait = min(max(retryAfter - now, .zero), retryAfterCap)
        let spread = min(max(wait.milliseconds / 10, base.milliseconds), retryAfterSpread.milliseconds)
        return now + wait + .milliseconds(portion(of: spread, random: random))
    }

    private static func portion(of milliseconds: Int64, random: Double) -> Int64 {
        Int64(Double(milliseconds) * min(max(random, 0), 1))
    }
}

// MARK: - What waits for the upstream

/// The pending operations of one upstream that wait because it demands so (docs/outbox.md#steering; RFC 9110 §10.2.3).
package struct RetryHold: Hashable, Sendable {
    package var upstream: String
    /// The number of operations.
    package var operations: Int
    /// The first moment at which one of them may be sent.
    package var until: Timestamp

    package init(upstream: String, operations: Int, until: Timestamp) {
        self.upstream = upstream
        self.operations = operations
        self.until = until
    }

    /// Returns the holds among `operations`, by the name of the upstream. `pauses` are the ends of pauses of whole upstreams.
    package static func among(_ operations: [QueuedWrite], pauses: [String: Timestamp], now: Timestamp) -> [RetryHold] {
        var holds: [String: RetryHold] = [:]
        for operation in operations {
            guard let moment = operation.heldUntil(pause: pauses[operation.upstream], now: now) else { continue }
            var hold = holds[operation.upstream] ?? RetryHold(upstream: operation.upstream, operations: 0, until: moment)
            hold.operations += 1
            hold.until = min(hold.until, moment)
            holds[operation.upstream] = hold
        }
        return holds.values.sorted { $0.upstream < $1.upstream }
    }
}

extension QueuedWrite {
    /// True if its last answer named a moment before which it is not to be sent again.
    package func waitsForRetryAfter(now: Timestamp) -> Bool {
        state == .pending && nextAttemptAt > now && result?.head.fields.contains(.retryAfter) == true
    }

    /// Returns until when its upstream demands that it waits; nil if it may be sent. `pause` is the end of a pause of the whole upstream.
    package func heldUntil(pause: Timestamp?, now: Timestamp) -> Timestamp? {
        guard state == .pending else { return nil }
        let own = waitsForRetryAfter(now: now) ? nextAttemptAt : now
        let moment = max(own, pause ?? now)
        return moment > now ? moment : nil
    }
}
