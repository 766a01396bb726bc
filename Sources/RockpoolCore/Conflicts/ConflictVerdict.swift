// The decision on a conflict.

/// The decision of a conflict, and the content of its record.
package struct ConflictVerdict: Hashable, Sendable {
    package enum Action: Hashable, Sendable {
        /// The upstream already has the intended state: from our own write with a lost answer, or from an equal change. No conflict.
        case delivered
        /// Sends a request with a new idempotency key, because its payload is different (docs/outbox.md#keys).
        case resend(Resend)
        /// The write ends; the upstream's state is kept.
        case yield
        /// A person decides.
        case ask
    }

    package var kind: Conflict.Kind
    package var detection: Conflict.Detection
    /// The sides, without the envelope.
    package var base: Conflict.Side?
    package var mine: Conflict.Side?
    package var theirs: Conflict.Side?
    package var result: Conflict.Side?
    package var fields: [MergedField]
    /// Nil where a person decides, and where there was no conflict.
    package var resolution: Conflict.Resolution?
    package var decidedBy: Conflict.Decider?
    package var action: Action
    /// True if the resulting state is exactly the write's intended state, without changes of others. If not, later writes that build on
    /// this one have not seen the resulting state: it cannot be their precondition, and the upstream is read before each of them.
    package var isAsMeant: Bool
    /// False if nobody else's change need be involved, and no side loses a value: then no conflict is recorded.
    package var isListed = true

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
