// The record of a conflict between two changes of one entity (docs/outbox.md#schema `conflict`, §1.6;
// docs/reference/behaviour.md#conflicts).
import HTTPTypes

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

/// Writes conflicts as JSON (docs/reference/admin-api.md#conflicts).
package enum ConflictDocument {
    /// Returns the whole document. A side has no envelope: JSON is embedded, other text is a string; an absent side, or one that is
    /// neither, is null.
    /// - Parameter seen: when and from where the client had got the base; nil where that is not known.
    package static func json(of conflict: Conflict, seen: BaseSeen? = nil) -> JSONValue {
        var document = summary(of: conflict)
        document["seen"] = seen?.json ?? .null
        document["base"] = side(of: conflict.base)
        document["mine"] = side(of: conflict.mine)
        document["theirs"] = side(of: conflict.theirs)
        document["merged"] = side(of: conflict.result)
        document["fields"] = .array(conflict.fields.map(field))
        return document
    }

    /// Returns the document without the sides and the fields, for lists.
    package static func summary(of conflict: Conflict) -> JSONValue {
        [
            "id": .string(conflict.id),
            "operation": .string(conflict.operation),
            "upstream": .string(conflict.upstream),
            "url": .string(SecretParameters.redacted(url: conflict.url)),
            "entity": .string(conflict.entity),
            "kind": .string(conflict.kind.rawValue),
            "strategy": .string(conflict.strategy.rawValue),
            "detection": .string(conflict.detection.rawValue),
            "openedAt": .string(RFC3339.format(conflict.openedAt)),
            "closedAt": .optional(conflict.closedAt.map(RFC3339.format)),
            "resolution": .optional(conflict.resolution?.rawValue),
            "decidedBy": .optional(conflict.decidedBy?.rawValue),
        ]
    }

    private static func side(of side: Conflict.Side?) -> JSONValue { side.map { OperationDocument.body(of: $0.body) } ?? .null }

    private static func field(of field: MergedField) -> JSONValue {
        [
            "pointer": .string(field.pointer.text),
            "base": field.base ?? .null,
            "mine": field.mine ?? .null,
            "theirs": field.theirs ?? .null,
            "merged": field.merged ?? .null,
            "conflicting": .bool(field.isConflicting),
        ]
    }
}

/// The chosen resolution (docs/reference/admin-api.md#conflicts `resolve`).
package struct ConflictChoice: Hashable, Sendable {
    package var resolution: Conflict.Resolution
    /// The whole new representation; only with `.merged`.
    package var merged: JSONValue?

    /// Parses the document of a `POST …/resolve`.
    /// - Throws: a 422 that names the invalid member.
    package init(_ document: JSONObject) throws(Refusal) {
        if let name = document.names.first(where: { !["resolution", "merged"].contains($0) }) {
            throw .unprocessable("unknown member \(name.prefix(40)); there are resolution and merged")
        }
        guard let resolution = document["resolution"]?.string.flatMap(Conflict.Resolution.init) else {
            throw .unprocessable("resolution is \(Conflict.Resolution.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        let merged = document["merged"].flatMap { $0.isNull ? nil : $0 }
        if merged != nil, resolution != .merged {
            throw .unprocessable("merged goes with the resolution merged, not \(resolution.rawValue)")
        }
        self.resolution = resolution
        self.merged = merged
    }
}

/// Undo of a decided conflict: it restores the losing side (issue 5.5; docs/reference/admin-api.md#conflicts `undo`).
extension Conflict {
    /// Returns a new write that restores the losing side, on top of the upstream's current state: later changes by others are kept.
    ///
    /// - Parameter side: `mine` or `theirs`; nil for the side that lost. After a merge both sides may have lost.
    /// - Throws: A 409 with the reason why there is nothing to restore.
    package func undone(
        resource: Resource, over today: ConflictCase.Theirs, side: Resolution? = nil
    ) throws(Refusal) -> Resend {
        guard closedAt != nil, let resolution else { throw .conflict("it was not decided: there is nothing to undo") }
        if let side {
            guard resolution != .both, side != resolution, side == .mine || side == .theirs else {
                throw .conflict("\(side.rawValue) did not lose: there is nothing to undo")
            }
            if resolution == .merged { return try restored(whole: side, resource: resource, over: today) }
        }
        switch resolution {
        case .both: throw .conflict("both sides were kept: nothing was lost")
        case .theirs where kind == .deleteEdit, .mine where theirs == nil, .merged where theirs == nil:
            return try deleted(resource, over: today)
        case .merged: return try restored(try putBack(resource), resource: resource, over: today)
        case .theirs:
            guard let mine else { throw .conflict("what the write meant is not known as a whole") }
            return try restored(mine, resource: resource, over: today)
        case .mine:
            guard let theirs else { throw .conflict("the other side is not known") }
            return try restored(theirs, resource: resource, over: today)
        }
    }

    /// Restores one side of a merge as a whole, with the changes made to the result since.
    private func restored(whole side: Resolution, resource: Resource, over today: ConflictCase.Theirs) throws(Refusal) -> Resend {
        let isDeletion = side == .mine ? kind == .deleteEdit : theirs == nil
        if isDeletion { return try deleted(resource, over: today) }
        guard let loser = side == .mine ? mine : theirs else { throw .conflict("\(side.rawValue) is not known as a whole") }
        return try restored(loser, resource: resource, over: today)
    }

    /// Restores the losing side unchanged, or merges it with the changes made to the result since.
    private func restored(_ loser: Side, resource: Resource, over today: ConflictCase.Theirs) throws(Refusal) -> Resend {
        let shape = RepresentationShape(resource)
        let request = try RequestHead(method: .put, url: url, fields: [.contentType: loser.contentType ?? "application/json"])
        let reissue = RequestRewriter(request, body: [], resource: resource)
        let current = today.side.flatMap(shape.object)
        var restored = shape.object(of: loser)
        if let lost = restored, let current {
            let merge = result.flatMap(shape.object).map {
                ThreeWayMerge(base: $0, mine: lost, theirs: current, rules: MergeRules(resource, always: .client)).merged
            }
            let revised = shape.restamped(merge ?? lost, as: current)
            if shape.unstamped(revised) == shape.unstamped(current) { throw .conflict("the upstream has it already") }
            restored = revised
        }
        guard let restored else {
            return RequestRewriter(request, body: loser.body, resource: resource).again(over: today)
        }
        guard let resend = reissue.putting(restored, over: today) else { throw .conflict("its item has no id") }
        return resend
    }

    private func deleted(_ resource: Resource, over today: ConflictCase.Theirs) throws(Refusal) -> Resend {
        if today == .gone { throw .conflict("it is deleted already") }
        return RequestRewriter(try RequestHead(method: .delete, url: url), body: [], resource: resource).again(over: today)
    }

    /// Returns the result with the losing value restored in every place where one side lost.
    private func putBack(_ resource: Resource) throws(Refusal) -> Side {
        let shape = RepresentationShape(resource)
        guard let result, let merged = shape.object(of: result) else { throw .conflict("the result is not known as a whole") }
        var object = merged
        // Backwards, so that the indices of array elements stay valid until they are used.
        for field in fields.reversed() where field.isConflicting && (field.merged == field.mine || field.merged == field.theirs) {
            if let lost = field.merged == field.mine ? field.theirs : field.mine {
                field.pointer.set(lost, in: &object)
            } else {
                field.pointer.remove(from: &object)
            }
        }
        guard object != merged else { throw .conflict("no single side lost a value: name the one to restore, mine or theirs") }
        return Side(body: object.serialized(), contentType: result.contentType)
    }
}
