// The record of a conflict between two changes of one entity (docs/outbox.md#schema `conflict`, §1.6;
// docs/reference/behaviour.md#conflicts).

/// A conflict: both sides, their common base, and the result. All four stay readable until the operation is purged.
package struct Conflict: Hashable, Sendable, Identifiable {
    /// UUIDv7, public.
    package var id: String
    /// The id of the operation that met the conflict; `sequence` is its sequence.
    package var operation: String
    package var sequence: Int64
    package var upstream: String
    /// The entity's URL at its upstream.
    package var url: String
    /// The entity's path, as in `QueuedWrite.entity`.
    package var entity: String
    package var kind: Kind
    /// The resource's strategy when the conflict was met.
    package var strategy: Resource.Conflict
    package var detection: Detection
    /// The representation that the client could have seen when it wrote; nil where it is unknown, and for creates.
    package var base: Side?
    /// The entity as the client's write intends it; nil where the write deletes it, or where it cannot be computed.
    package var mine: Side?
    /// The upstream's representation; nil where the entity does not exist there.
    package var theirs: Side?
    /// The representation that was sent, or that the strategy would send; nil where that is a deletion, or where it cannot be determined.
    package var result: Side?
    /// Every place where a side differs from the base; empty where a side is not JSON.
    package var fields: [MergedField]
    package var openedAt: Timestamp
    /// The time of the decision; nil while the conflict waits for a person.
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
    /// The two changes: mine first, then theirs.
    package enum Kind: String, CaseIterable, Sendable, Codable {
        case editEdit = "edit-edit"
        case editDelete = "edit-delete"
        case deleteEdit = "delete-edit"
        case createCreate = "create-create"
    }

    /// `weak` where the upstream checks no validator: the current state was read just before the write, and changes in between are not
    /// detected.
    package enum Detection: String, CaseIterable, Sendable, Codable { case strong, weak }

    /// The side that prevails.
    package enum Resolution: String, CaseIterable, Sendable, Codable { case mine, theirs, both, merged }

    /// The origin of the decision.
    package enum Decider: String, CaseIterable, Sendable, Codable { case strategy, person }

    /// One side's representation, without the envelope, as its client or the upstream wrote it.
    package struct Side: Hashable, Sendable {
        package var body: [UInt8]
        package var contentType: String?
        /// The upstream's validator for it, weak ones with their `W/`; nil for a representation that the upstream never had.
        package var etag: String?

        package init(body: [UInt8], contentType: String? = nil, etag: String? = nil) {
            self.body = body
            self.contentType = contentType
            self.etag = etag
        }

        /// The weak validator in place of one, of a base that its client knows from a list only: it may lack members of the item.
        package static let listedMark = "W/\"listed\""
        var isListed: Bool { etag == Self.listedMark }
    }
}
