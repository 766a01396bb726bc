// What is known where a write meets another's change, and what was decided of it (outbox.md §1.6, §2.2).

/// A write that met another's change.
package struct ConflictCase: Hashable, Sendable {
    /// What the upstream has where the write was to go.
    package enum Theirs: Hashable, Sendable {
        /// Its whole body, in its envelope or bare, and the head that came with it.
        case present(Conflict.Side, ResponseHead)
        /// 404 or 410.
        case gone
    }

    /// How it was met.
    package enum Cause: Hashable, Sendable {
        /// The upstream refused the write with this status.
        case refused(status: Int)
        /// A look before sending showed it.
        case seen
    }

    /// As it was sent, or would be: server ids in it, without credential and key.
    package var request: RequestHead
    package var body: [UInt8]
    package var resource: Resource
    /// What its client could have seen, in its envelope or bare; nil where nobody knows. Never a guess.
    package var base: Conflict.Side?
    package var theirs: Theirs
    package var cause: Cause
    /// How often it was resent after a conflict.
    package var rounds: Int
    /// Whether an attempt with this very payload got no answer: then theirs may hold it already.
    package var mayHaveApplied: Bool
    /// By our clock.
    package var acceptedAt: Timestamp
    /// The upstream's clock less ours.
    package var clockSkew: TimeSpan
    /// When theirs was deleted, by the upstream's clock, where a tombstone told.
    package var deletedAt: Timestamp?
    /// Whether the upstream checks the conditions it is sent.
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

    /// Resends after conflicts; what then meets another waits for a person.
    package static let roundLimit = 5
    /// Bytes of a body that is read as JSON; larger ones are kept whole or not at all.
    package static let sizeLimit = 1 << 20
}

/// What is done about a conflict, and what its record holds.
package struct ConflictVerdict: Hashable, Sendable {
    package enum Action: Hashable, Sendable {
        /// The upstream shows what was meant already: our own write whose answer was lost, or the same change. No conflict.
        case delivered
        /// Under a new key: its payload is another (outbox.md §1.7).
        case resend(Resend)
        /// The write ends; what the upstream has stands.
        case yield
        /// A person says.
        case ask
    }

    package var kind: Conflict.Kind
    package var detection: Conflict.Detection
    /// The sides, bare.
    package var base: Conflict.Side?
    package var mine: Conflict.Side?
    package var theirs: Conflict.Side?
    package var result: Conflict.Side?
    package var fields: [MergedField]
    /// Nil where a person is asked, and where there was no conflict.
    package var resolution: Conflict.Resolution?
    package var decidedBy: Conflict.Decider?
    package var action: Action
    /// Whether what then stands is what the write meant, and nothing of another's beside it. If not, later writes that build on this one
    /// have not seen what stands: it is none of their conditions, and theirs is to be looked at before each.
    package var isAsMeant: Bool

    package init(
        kind: Conflict.Kind, detection: Conflict.Detection, base: Conflict.Side?, mine: Conflict.Side?, theirs: Conflict.Side?,
        result: Conflict.Side? = nil, fields: [MergedField] = [], resolution: Conflict.Resolution? = nil,
        decidedBy: Conflict.Decider? = nil, action: Action, isAsMeant: Bool = false
    ) {
        self.kind = kind
        self.detection = detection
        self.base = base
        self.mine = mine
        self.theirs = theirs
        self.result = result
        self.fields = fields
        self.resolution = resolution
        self.decidedBy = decidedBy
        self.action = action
        self.isAsMeant = isAsMeant
    }
}

/// A request that goes in the place of one that met a conflict, or that undoes one.
package struct Resend: Hashable, Sendable {
    /// With the condition that today's state requires, and without credential and key.
    package var request: RequestHead
    package var body: [UInt8]
    /// `weak` where it carries nothing that the upstream could check: then look again just before it is sent.
    package var detection: Conflict.Detection

    package init(request: RequestHead, body: [UInt8], detection: Conflict.Detection) {
        self.request = request
        self.body = body
        self.detection = detection
    }
}
