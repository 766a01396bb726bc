// The decision of a conflict, by its resource's strategy or by a person (docs/outbox.md#strategies, docs/outbox.md#detection).
package import HTTPTypes

/// A write that conflicts with another change (docs/outbox.md#merging, docs/outbox.md#detection).
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

/// A request that replaces one that met a conflict, or that undoes one.
package struct Resend: Hashable, Sendable {
    /// The request with the precondition for the current state, without credential and idempotency key.
    package var request: RequestHead
    package var body: [UInt8]
    /// `weak` where the request carries no condition that the upstream could check: then the upstream is read again just before sending.
    package var detection: Conflict.Detection

    package init(request: RequestHead, body: [UInt8], detection: Conflict.Detection) {
        self.request = request
        self.body = body
        self.detection = detection
    }
}

/// The decision of a conflict by its resource's strategy (docs/outbox.md#strategies).
extension ConflictCase {
    /// Returns the verdict of the strategy. A conflict that the strategy cannot decide waits for a person, and so does a write that was
    /// resent `roundLimit` times.
    package func verdict() -> ConflictVerdict {
        let decision = ConflictResolver(self)
        guard let verdict = way(decision), !verdict.isRepetition(of: self) else { return decision.asked() }
        return verdict
    }

    private func way(_ decision: ConflictResolver) -> ConflictVerdict? {
        let sides = decision.sides
        let course = resource.conflict.course(of: sides.kind)
        if sides.isDelivered {
            // For a counter, an equal value need not mean an equal change: if none of our attempts can have been applied, another client
            // changed it.
            return (course == .merge && !mayHaveApplied ? decision.merged() : nil) ?? decision.verdict(.delivered)
        }
        if mayMeetOwnAction, let merged = decision.mergedWithOwnAction() { return merged }
        if let creation = creationInstead { return decision.verdict(.resend(creation), result: sides.mine, resolution: .mine) }
        return sides.isUnmoved ? decision.mine() : decision.followed(course)
    }

    /// A POST in the place of a create-only PUT that the API does not support (docs/reference/behaviour.md#conflicts).
    private var creationInstead: Resend? {
        guard case .refused(let status) = cause, [404, 405, 501].contains(status), theirs == .gone, rounds < Self.roundLimit else {
            return nil
        }
        return Resend.creation(insteadOf: request, body: body, resource: resource)
    }

    /// True if the write is newer than the upstream's change, by the upstream's clock; nil where the upstream gives no time. A time in
    /// whole seconds may be as late as that second's end; ties go to the server.
    var mineIsNewer: Bool? {
        let time: Timestamp?
        switch theirs {
        case .gone: time = deletedAt
        case .present(let side, let head):
            let shape = RepresentationShape(resource)
            let stated = shape.updatedAt.flatMap { place in shape.object(of: side).flatMap(place.get) }
            let times = [stated.flatMap(Timestamp.init(stated:)), head.fields.single(.lastModified).flatMap { HTTPDate.parse($0) }]
            time = times.lazy.compactMap(\.self).first { !$0.isImpossible(at: readAt) }
        }
        guard let time, !time.isImpossible(at: readAt) else { return nil }
        let mine = acceptedAt + clockSkew
        return time.milliseconds % 1000 == 0 ? mine.seconds > time.seconds : mine > time
    }
}

extension Resend {
    /// Returns the creation of a new entity in place of a PUT with `If-None-Match: *`, for an API without PUT (405, 501, 404). Nil for
    /// another request, and where the collection is unknown.
    package static func creation(insteadOf request: RequestHead, body: [UInt8], resource: Resource) -> Resend? {
        guard request.method == .put, request.createsOnly else { return nil }
        let object = RepresentationShape(resource).object(
            of: Conflict.Side(body: body, contentType: request.fields[.contentType]))
        return RequestRewriter(request, body: body, resource: resource).creating(object)
    }
}

extension ConflictVerdict {
    /// True if the verdict would resend the request that was just refused, or exceed the resend limit.
    fileprivate func isRepetition(of met: ConflictCase) -> Bool {
        guard case .resend(let resend) = action else { return false }
        if met.rounds >= ConflictCase.roundLimit { return true }
        return met.cause != .seen && resend.request == met.request && resend.body == met.body
    }
}

/// The resolution of a conflict by a person (docs/reference/behaviour.md#conflicts `resolve`, §6).
extension ConflictCase {
    /// Returns the verdict for a person's resolution. Mine, theirs and both apply to the upstream's current state; a merged representation
    /// was written against `seen`, and later upstream changes are merged into it.
    ///
    /// - Parameters:
    ///   - merged: The whole new representation, without the envelope, for the resolution `merged`.
    ///   - seen: The upstream's representation that the person was shown.
    /// - Throws: A 422 when the resolution is invalid, a 409 with the reason when it cannot be carried out.
    package func resolved(
        by resolution: Conflict.Resolution, merged: JSONValue? = nil, seen: Conflict.Side? = nil
    ) throws(Refusal) -> ConflictVerdict {
        let decision = ConflictResolver(self)
        let verdict: ConflictVerdict?
        switch resolution {
        case .theirs: verdict = decision.theirs()
        case .mine: verdict = decision.sides.isDelivered ? decision.verdict(.delivered) : decision.mine()
        case .both:
            guard request.method != .delete else { throw .conflict("a deletion has nothing to keep beside what the upstream has") }
            verdict = decision.both()
        case .merged:
            guard let merged else { throw .unprocessable("merged is missing: the whole new representation") }
            guard merged.object != nil else { throw .unprocessable("merged is the whole new representation, a JSON object") }
            verdict = try decision.replaced(by: decision.current(merged, seen: seen))
        }
        guard var verdict else { throw .conflict(resolution.hindrance) }
        if verdict.resolution != nil { verdict.decidedBy = .person }
        return verdict
    }
}

extension ConflictResolver {
    /// Returns a person's representation merged with the upstream's later changes, and with the upstream's values in the members that only
    /// the upstream writes.
    fileprivate func current(_ merged: JSONValue, seen: Conflict.Side?) throws(Refusal) -> JSONValue {
        guard let theirs = sides.theirs else {
            guard met.theirs == .gone else { throw .unprocessable("what the upstream has is no JSON object: choose one of the sides") }
            return merged
        }
        guard let seen = seen.flatMap(sides.shape.object), !sides.isSame(seen, as: theirs) else {
            return sides.shape.restamped(merged, as: theirs)
        }
        let again = ThreeWayMerge(base: seen, mine: merged, theirs: theirs, rules: MergeRules(met.resource))
        guard again.isResolved else {
            let places = again.fields.filter { $0.isConflicting }.map(\.pointer.text).prefix(5).joined(separator: ", ")
            throw .conflict("the upstream has changed it again since it was shown, at \(places): look at it again")
        }
        return sides.shape.restamped(again.merged, as: theirs)
    }
}

extension Conflict.Resolution {
    /// The reason why the resolution is not possible.
    fileprivate var hindrance: String {
        switch self {
        case .mine: "what the write means cannot be carried out on what the upstream has now"
        case .theirs: "the upstream's side cannot be kept"
        case .both: "what the write means is not known as a whole, or its collection is not"
        case .merged: "there is no item of the upstream that it could be written to"
        }
    }
}

/// The table of strategies by kind of conflict (docs/outbox.md#strategies). The decisions and the README are generated from it.
extension Resource.Conflict {
    /// The intended outcome of a conflict, before its feasibility is known: an outcome that is not feasible waits for a person.
    package enum Course: String, CaseIterable, Sendable {
        case theirs = "theirs stands"
        case mine = "mine is carried out on theirs"
        case newer = "the later of the two stands; asks where the upstream gives no time"
        case merge = "merged by field; asks without a base"
        case both = "theirs stands, mine becomes a new entity"
        case ask = "waits for a person"
    }

    /// Returns the course for a kind of conflict.
    package func course(of kind: Conflict.Kind) -> Course {
        switch (self, kind) {
        case (.lastWriteWins, _): .newer
        case (.serverWins, _): .theirs
        case (.clientWins, _): .mine
        case (.fieldMerge, .editEdit): .merge
        case (.fieldMerge, _): .ask
        // Of a deletion and an edit, only the edit leaves anything to keep.
        case (.keepBoth, .deleteEdit): .theirs
        case (.keepBoth, _): .both
        case (.ask, _): .ask
        }
    }

    /// Returns the strategies by kind and the field rules as Markdown, which the README includes verbatim.
    package static func table() -> String {
        let kinds = Conflict.Kind.allCases
        let strategies = allCases.map { strategy in
            ["`\(strategy.rawValue)`"] + kinds.map { strategy.course(of: $0).rawValue }
        }
        let fields = FieldStrategy.meanings.map { ["`\($0.word)`", $0.meaning] }
        return rows(["strategy"] + kinds.map(\.rawValue), rows: strategies) + "\n"
            + rows(["field strategy", "where both sides changed the field"], rows: fields)
    }

    private static func rows(_ head: [String], rows: [[String]]) -> String {
        ([head, head.map { _ in "---" }] + rows).map { "| " + $0.joined(separator: " | ") + " |\n" }.joined()
    }
}

/// A GET just before sending, where that is the only way to detect another change (docs/outbox.md#detection: weak detection; §2.2).
package enum ConflictPrecheck {
    /// True if a write must be preceded by a read: its base is known, and no condition in the request lets the upstream distinguish that
    /// base from another state. A change between the read and the write is not detected.
    ///
    /// - Parameter isAnswer: The base is the upstream's answer to an earlier write of this outbox: if it contains only members that the
    ///   upstream alone writes, there is nothing to compare.
    package static func isNeeded(
        _ request: RequestHead, body: [UInt8], base: Conflict.Side?, resource: Resource, isAnswer: Bool = false
    ) -> Bool {
        guard let base, request.method == .put || request.method == .patch || request.method == .delete else { return false }
        if [HTTPField.Name.ifMatch, .ifNoneMatch, .ifUnmodifiedSince].contains(where: request.fields.contains) { return false }
        let shape = RepresentationShape(resource)
        if isAnswer, let object = shape.object(of: base), shape.unstamped(object).object?.isEmpty ?? false { return false }
        guard let version = resource.versionPlace else {
            return !(base.etag.flatMap { EntityTag($0) }?.isStrong ?? false)
        }
        guard body.count <= ConflictCase.sizeLimit, let sent = try? JSONValue.parse(body) else { return true }
        return version.get(in: shape.unwrapped(sent)) == nil
    }

    /// True if theirs differs from the base: the sides are equal if their strong ETag or version is equal, otherwise their content is
    /// compared without the members that the upstream alone writes.
    ///
    /// - Parameters:
    ///   - isAnswer: The base is the upstream's answer to an earlier write of this outbox, which may omit members.
    ///   - method: The write's. A PUT would remove members that its client does not know, because it has seen a list only.
    package static func hasMoved(
        from base: Conflict.Side, to theirs: Conflict.Side, resource: Resource, isAnswer: Bool = false, by method: HTTPRequest.Method = .put
    ) -> Bool {
        if let before = base.etag.flatMap({ EntityTag($0) }), let now = theirs.etag.flatMap({ EntityTag($0) }), before.isStrong,
            before.matchesStrongly(now)
        {
            return false
        }
        let shape = RepresentationShape(resource)
        guard let before = shape.object(of: base), let now = shape.object(of: theirs) else { return base.body != theirs.body }
        if let version = resource.versionPlace, let known = version.get(in: before), known == version.get(in: now) { return false }
        if isAnswer || (base.isListed && method != .put), let said = shape.unstamped(before).object {
            return said.contains { now[$0.name] != $0.value }
        }
        return shape.unstamped(before) != shape.unstamped(now)
    }
}
