// Squashing of two adjacent operations of a lane into one before either is sent (docs/outbox.md#squash).
package import HTTPTypes

/// Squashing: off unless the upstream's `queue.squash` is `safe`.
package enum Squash {
    /// The decision on the two operations.
    package enum Decision: Hashable, Sendable {
        /// Both are sent, one after the other.
        case keepBoth(Reason)
        /// The later operation is sent with this body under its own key; the earlier ends as superseded by it. A PUT and a PATCH become a
        /// PUT with the earlier's content type.
        case replace(body: [UInt8], method: HTTPRequest.Method)
        /// The earlier operation creates the entity with this body; the later ends as superseded by it.
        case foldIntoCreate(body: [UInt8])
        /// The later operation deletes the entity that the earlier would have created: both end as cancelled.
        case cancelBoth
    }

    /// The reason for keeping both, for the sync log.
    package enum Reason: String, Sendable {
        case sent = "one of them was or is being sent"
        case lane = "they are of different lanes or entities"
        case notAdjacent = "another operation lies between them"
        case dependants = "other operations wait for the earlier one"
        case forbidden = "one of them must not be merged"
        case principal = "they are different people's"
        case terms = "priority, expiry, group or needs differ"
        case fields = "they have different targets or header fields"
        case pair = "two such writes are never merged"
        case content = "a body is not the JSON its type says"
        case composition = "no single write has the effect of both"
    }

    /// Decides on two operations of one lane, in order of acceptance.
    package static func decide(earlier: SquashCandidate, later: SquashCandidate) -> Decision {
        if let reason = hindrance(earlier: earlier, later: later) { return .keepBoth(reason) }
        if earlier.isCreate { return decide(create: earlier, later: later) }
        if earlier.needs != later.needs.subtracting([earlier.sequence]) { return .keepBoth(.terms) }
        if earlier.target != later.target || earlier.effectiveFields != later.effectiveFields { return .keepBoth(.fields) }
        // Of two create-only writes, the first one wins.
        if later.fields[.ifNoneMatch] != nil { return .keepBoth(.fields) }
        switch (earlier.method, later.method) {
        case (.put, .delete), (.patch, .delete): return .replace(body: later.body, method: .delete)
        case (.put, .put):
            guard isSameType(earlier, as: later) else { return .keepBoth(.pair) }
            return hasMembers(of: earlier.body, later.body) ? .replace(body: later.body, method: .put) : .keepBoth(.composition)
        case (.patch, .patch):
            guard isSameType(earlier, as: later), let composition = composition(of: later) else { return .keepBoth(.pair) }
            return joined(earlier, with: later, composition.composed)
        case (.put, .patch):
            guard JSONBodyType(earlier.contentType) == .json, let composition = composition(of: later) else { return .keepBoth(.pair) }
            return joined(earlier, with: later) { put, patch in
                composition.applied(patch, to: put).flatMap { hasMembers(of: put, $0) ? $0 : nil }
            }
        default: return .keepBoth(.pair)
        }
    }

    /// Decides on a create and a write to the item that it would create.
    private static func decide(create: SquashCandidate, later: SquashCandidate) -> Decision {
        if isConditional(later) { return .keepBoth(.pair) }
        if later.method == .delete { return .cancelBoth }
        guard later.method == .put || later.method == .patch else { return .keepBoth(.pair) }
        if !later.needs.subtracting([create.sequence]).isSubset(of: create.needs) { return .keepBoth(.terms) }
        let hasQuery = create.target.contains("?") || later.target.contains("?")
        if hasQuery || create.effectiveFields != later.effectiveFields { return .keepBoth(.fields) }
        guard JSONBodyType(create.contentType) == .json, !LocalIDScan.mayOccur(body: later.body) else { return .keepBoth(.pair) }
        guard let made = try? JSONValue.parse(create.body), let change = try? JSONValue.parse(later.body), let members = made.object else {
            return .keepBoth(.content)
        }
        if later.method == .put {
            // The upstream may give a default to a member that is absent at the creation, but not at the replacement.
            guard isSameType(create, as: later), let names = change.object?.names, Set(members.names).isSubset(of: names) else {
                return .keepBoth(.composition)
            }
            return .foldIntoCreate(body: later.body)
        }
        guard let composition = composition(of: later) else { return .keepBoth(.pair) }
        // Removing a member differs from leaving it out: the upstream may give it a default.
        guard let both = composition.applied(change, to: made), let result = both.object, Set(members.names).isSubset(of: result.names)
        else { return .keepBoth(.composition) }
        return .foldIntoCreate(body: both.serialized())
    }

    /// Returns the first reason that prevents squashing for any methods.
    private static func hindrance(earlier: SquashCandidate, later: SquashCandidate) -> Reason? {
        if !earlier.isUnsent || !later.isUnsent { return .sent }
        if earlier.lane != later.lane || earlier.entity == nil || earlier.entity != later.entity { return .lane }
        if later.previous != earlier.sequence || earlier.sequence >= later.sequence { return .notAdjacent }
        if earlier.hasDependants { return .dependants }
        if !earlier.permitsMerging || !later.permitsMerging { return .forbidden }
        if earlier.principal != later.principal { return .principal }
        if earlier.priority != later.priority || earlier.expiresAt != later.expiresAt || earlier.group != later.group { return .terms }
        return earlier.action != nil || later.action != nil || later.isCreate ? .pair : nil
    }

    private static func joined(
        _ earlier: SquashCandidate, with later: SquashCandidate, _ join: (JSONValue, JSONValue) -> JSONValue?
    ) -> Decision {
        guard let before = try? JSONValue.parse(earlier.body), let after = try? JSONValue.parse(later.body) else {
            return .keepBoth(.content)
        }
        return join(before, after).map { .replace(body: $0.serialized(), method: earlier.method) } ?? .keepBoth(.composition)
    }

    /// True if a later body has every member of an earlier one: the upstream may keep what a PUT leaves out. Other content is replaced as a whole.
    private static func hasMembers(of earlier: [UInt8], _ later: [UInt8]) -> Bool {
        guard let before = try? JSONValue.parse(earlier), let after = try? JSONValue.parse(later) else { return true }
        return hasMembers(of: before, after)
    }

    private static func hasMembers(of earlier: JSONValue, _ later: JSONValue) -> Bool {
        guard let before = earlier.object, let after = later.object else { return true }
        return before.allSatisfy { name, value in
            after[name].map { value.object == nil || hasMembers(of: value, $0) } ?? false
        }
    }

    /// Returns the composition rules of a PATCH's merge patch; nil when it is not one.
    private static func composition(of patch: SquashCandidate) -> MergePatchComposition? {
        switch JSONBodyType(patch.contentType) {
        case .mergePatch: MergePatchComposition(reading: .merge)
        case .json: MergePatchComposition(reading: .shallow)
        case .otherJSON, .jsonPatch, .other: nil
        }
    }

    private static func isSameType(_ a: SquashCandidate, as b: SquashCandidate) -> Bool {
        a.contentType?.lowercased() == b.contentType?.lowercased()
    }

    private static func isConditional(_ candidate: SquashCandidate) -> Bool {
        candidate.fields.contains { $0.name == .ifMatch || $0.name == .ifNoneMatch || $0.name == .ifUnmodifiedSince }
    }
}

/// One of two adjacent operations in a lane.
package struct SquashCandidate: Hashable, Sendable {
    /// The position in acceptance order.
    package var sequence: Int64
    /// True if it is pending and no attempt ever began.
    package var isUnsent: Bool
    /// The lane it is in, with its upstream.
    package var lane: String
    /// The open operation before it in its lane.
    package var previous: Int64?
    /// The entity's path; for a create, that of its local id. Nil when unknown: then it is never squashed.
    package var entity: String?
    /// True if it adds an item to a collection.
    package var isCreate: Bool
    /// The action in the path: `publish` of `POST /notes/17/publish`.
    package var action: String?
    package var method: HTTPRequest.Method
    /// Path and query.
    package var target: String
    /// The fields as they would be sent; without credential, key and `Content-Type`.
    package var fields: HTTPFields
    package var contentType: String?
    package var body: [UInt8]
    /// The principal that sent the write.
    package var principal: String?
    package var priority: Int
    package var expiresAt: Timestamp?
    /// From `Rockpool-Group`.
    package var group: String?
    /// Sequences of the operations it waits for besides its lane.
    package var needs: Set<Int64>
    /// True if operations other than its neighbour wait for it.
    package var hasDependants: Bool
    /// False when the client sent `Rockpool-No-Merge: true`.
    package var permitsMerging: Bool

    package init(
        sequence: Int64, isUnsent: Bool = true, lane: String, previous: Int64? = nil, entity: String?, isCreate: Bool = false,
        action: String? = nil, method: HTTPRequest.Method, target: String, fields: HTTPFields = [:], contentType: String? = nil,
        body: [UInt8] = [], principal: String? = nil, priority: Int = 0, expiresAt: Timestamp? = nil, group: String? = nil,
        needs: Set<Int64> = [], hasDependants: Bool = false, permitsMerging: Bool = true
    ) {
        self.sequence = sequence
        self.isUnsent = isUnsent
        self.lane = lane
        self.previous = previous
        self.entity = entity
        self.isCreate = isCreate
        self.action = action
        self.method = method
        self.target = target
        self.fields = fields
        self.contentType = contentType
        self.body = body
        self.principal = principal
        self.priority = priority
        self.expiresAt = expiresAt
        self.group = group
        self.needs = needs
        self.hasDependants = hasDependants
        self.permitsMerging = permitsMerging
    }

    /// The fields that may affect the write: all but those known not to. A difference in an unknown field counts.
    var effectiveFields: HTTPFields {
        HTTPFields(fields.filter { !Self.withoutEffect.contains($0.name.canonicalName) })
    }

    private static let withoutEffect: Set<String> = [
        "accept", "accept-encoding", "accept-language", "connection", "content-length", "date", "origin", "priority", "referer",
        "sec-ch-ua",
        "sec-ch-ua-mobile", "sec-ch-ua-platform", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "traceparent", "tracestate",
        "user-agent", "x-request-id",
    ]
}
