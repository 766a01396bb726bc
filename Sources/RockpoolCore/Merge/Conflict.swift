// Two changes of one entity that met, and what became of it (outbox.md §1.2 `conflict`, §1.6; contract §5).

/// A conflict: both sides, what they began from, and the result. All four stay readable until the operation is purged.
package struct Conflict: Hashable, Sendable, Identifiable {
    /// UUIDv7, public.
    package var id: String
    /// The operation that met it: its id and its sequence.
    package var operation: String
    package var sequence: Int64
    package var upstream: String
    /// The entity's URL at its upstream.
    package var url: String
    /// The entity's path, as in `Operation.entity`.
    package var entity: String
    package var kind: Kind
    /// The resource's strategy when it was met.
    package var strategy: Resource.Conflict
    package var detection: Detection
    /// What the client could have seen when it wrote; nil where nobody knows, and for creates.
    package var base: Side?
    /// What its write means the entity to be; nil where it deletes it, or where that cannot be computed.
    package var mine: Side?
    /// What the upstream has; nil where it has nothing.
    package var theirs: Side?
    /// What was sent, or would be by the strategy; nil where that is a deletion, or nobody can say.
    package var result: Side?
    /// Every place where a side differs from the base; empty where a side is not JSON.
    package var fields: [MergedField]
    package var openedAt: Timestamp
    /// When it was decided; nil while it waits for a person.
    package var closedAt: Timestamp?
    package var resolution: Resolution?
    package var decidedBy: Decider?

    package init(
        id: String, operation: String, sequence: Int64, upstream: String, url: String, entity: String, kind: Kind,
        strategy: Resource.Conflict, detection: Detection, base: Side?, mine: Side?, theirs: Side?, result: Side?,
        fields: [MergedField] = [], openedAt: Timestamp, closedAt: Timestamp? = nil, resolution: Resolution? = nil,
        decidedBy: Decider? = nil
    ) {
        self.id = id
        self.operation = operation
        self.sequence = sequence
        self.upstream = upstream
        self.url = url
        self.entity = entity
        self.kind = kind
        self.strategy = strategy
        self.detection = detection
        self.base = base
        self.mine = mine
        self.theirs = theirs
        self.result = result
        self.fields = fields
        self.openedAt = openedAt
        self.closedAt = closedAt
        self.resolution = resolution
        self.decidedBy = decidedBy
    }
}

extension Conflict {
    /// What the two did: mine first, then theirs.
    package enum Kind: String, CaseIterable, Sendable, Codable {
        case editEdit = "edit-edit"
        case editDelete = "edit-delete"
        case deleteEdit = "delete-edit"
        case createCreate = "create-create"
    }

    /// `weak` where the upstream has no validator that it checks: then it was read just before, and what came between is not seen.
    package enum Detection: String, CaseIterable, Sendable, Codable { case strong, weak }

    /// Which side stands.
    package enum Resolution: String, CaseIterable, Sendable, Codable { case mine, theirs, both, merged }

    /// Who decided.
    package enum Decider: String, CaseIterable, Sendable, Codable { case strategy, person }

    /// One side's representation, bare: as its client or the upstream wrote it.
    package struct Side: Hashable, Sendable {
        package var body: [UInt8]
        package var contentType: String?
        /// The upstream's validator of it, weak ones with their `W/`; nil for what it has never had.
        package var etag: String?

        package init(body: [UInt8], contentType: String? = nil, etag: String? = nil) {
            self.body = body
            self.contentType = contentType
            self.etag = etag
        }
    }
}

/// One place of a merge. A value that is nil is absent there.
package struct MergedField: Hashable, Sendable {
    package var pointer: JSONPointer
    package var base: JSONValue?
    package var mine: JSONValue?
    package var theirs: JSONValue?
    /// Nil also where it is for a person to say.
    package var merged: JSONValue?
    /// Whether both sides changed it, and differently: then one of them has lost something, or a person is asked.
    package var isConflicting: Bool

    package init(
        pointer: JSONPointer, base: JSONValue?, mine: JSONValue?, theirs: JSONValue?, merged: JSONValue?, isConflicting: Bool
    ) {
        self.pointer = pointer
        self.base = base
        self.mine = mine
        self.theirs = theirs
        self.merged = merged
        self.isConflicting = isConflicting
    }
}
