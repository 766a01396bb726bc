// The decision of a conflict by its resource's strategy (docs/outbox.md#strategies).
import HTTPTypes

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
