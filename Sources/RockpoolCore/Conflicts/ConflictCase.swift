// The input of a conflict decision, and its verdict (docs/outbox.md#merging, docs/outbox.md#detection).

/// A write that conflicts with another change.
package struct ConflictCase: Hashable, Sendable {
    /// The upstream's current state of the write's target.
    package enum Theirs: Hashable, Sendable {
        /// The whole body, with or without its envelope, and the head that came with it.
        case present(Conflict.Side, ResponseHead)
        /// 404 or 410.
        case gone
    }

    /// The way the conflict was detected.
    package enum Cause: Hashable, Sendable {
        /// The upstream refused the write with this status.
        case refused(status: Int)
        /// A read before sending detected it.
        case seen
    }

    /// The request as it was sent, or would be: with server ids, without credential and idempotency key.
    package var request: RequestHead
    package var body: [UInt8]
    package var resource: Resource
    /// The representation the client could have seen, with or without its envelope; nil where it is unknown. Never a guess.
    package var base: Conflict.Side?
    package var theirs: Theirs
    package var cause: Cause
    /// The number of resends after a conflict.
    package var rounds: Int
    /// True if an attempt with exactly this payload got no answer: then `theirs` may include it already.
    package var mayHaveApplied: Bool
    /// True if the upstream's change may be, or include, an action of the same client whose effect on the entity is not known: its answer
    /// was lost while the client waited (docs/outbox.md#base).
    package var mayMeetOwnAction = false
    /// The acceptance time by the proxy's clock.
    package var acceptedAt: Timestamp
    /// The upstream's clock minus the proxy's clock.
    package var clockSkew: TimeSpan
    /// The upstream's clock when it was read; nil where that is not known. A change that is stated to be later than this is not believed.
    package var readAt: Timestamp?
    /// The time of the upstream's deletion, by its clock, where a tombstone contains it.
    package var deletedAt: Timestamp?
    /// `strong` if the upstream checks the conditions it is sent.
    package var detection: Conflict.Detection

    package init(
        request: RequestHead, body: [UInt8], resource: Resource, base: Conflict.Side?, theirs: Theirs, cause: Cause, rounds: Int = 0,
        mayHaveApplied: Bool = false, acceptedAt: Timestamp, clockSkew: TimeSpan = .zero, deletedAt: Timestamp? = nil,
        detection: Conflict.Detection = .strong
    ) {
        self.request = request
        self.body = body
        self.resource = resource
        self.base = base
        self.theirs = theirs
        self.cause = cause
        self.rounds = rounds
        self.mayHaveApplied = mayHaveApplied
        self.acceptedAt = acceptedAt
        self.clockSkew = clockSkew
        self.deletedAt = deletedAt
        self.detection = detection
    }

    /// The maximum number of resends after conflicts; a further conflict waits for a person.
    package static let roundLimit = 5
    /// The maximum size in bytes of a body that is parsed as JSON; larger ones are kept whole or not at all.
    package static let sizeLimit = Int.mib(1)
}
