// The decision of a conflict by its resource's strategy (outbox.md §1.6).
import HTTPTypes

extension ConflictCase {
    /// What is done about it. What a strategy cannot do waits for a person, and so does what was resent `roundLimit` times.
    package func verdict() -> ConflictVerdict {
        let decision = ConflictDecision(self)
        guard let verdict = way(decision), !verdict.isRepetition(of: self) else { return decision.asked() }
        return verdict
    }

    private func way(_ decision: ConflictDecision) -> ConflictVerdict? {
        let sides = decision.sides
        let course = resource.conflict.course(of: sides.kind)
        if sides.isDelivered {
            // The same value need not be the same step: what no lost attempt of ours can have counted is another's count.
            return (course == .merge && !mayHaveApplied ? decision.merged() : nil) ?? decision.verdict(.delivered)
        }
        if let creation = creationInstead { return decision.verdict(.resend(creation), result: sides.mine, resolution: .mine) }
        return sides.isUnmoved ? decision.mine() : decision.followed(course)
    }

    /// A POST in the place of a PUT that may only create, where the API takes none (contract §6).
    private var creationInstead: Resend? {
        guard case .refused(let status) = cause, [404, 405, 501].contains(status), theirs == .gone, rounds < Self.roundLimit else {
            return nil
        }
        return Resend.creation(insteadOf: request, body: body, resource: resource)
    }

    /// Whether my write came after theirs, by the upstream's clock; nil where that gives no time of theirs. What it gives in whole seconds
    /// may be as late as that second's end; ties are the server's.
    var mineIsNewer: Bool? {
        let time: Timestamp?
        switch theirs {
        case .gone: time = deletedAt
        case .present(let side, let head):
            let shape = RepresentationShape(resource)
            let stated = shape.updatedAt.flatMap { place in shape.object(of: side).flatMap(place.get) }
            time = stated.flatMap(Timestamp.init) ?? head.fields.single(.lastModified).flatMap { HTTPDate.parse($0) }
        }
        guard let time else { return nil }
        let mine = acceptedAt + clockSkew
        return time.milliseconds % 1000 == 0 ? mine.seconds > time.seconds : mine > time
    }
}

extension Resend {
    /// The creation of a new entity in place of a PUT with `If-None-Match: *`, for an API that takes no PUT there (405, 501, 404). Nil for
    /// another request, and where nobody knows the collection.
    package static func creation(insteadOf request: RequestHead, body: [UInt8], resource: Resource) -> Resend? {
        guard request.method == .put, request.createsOnly else { return nil }
        let object = RepresentationShape(resource).object(
            of: Conflict.Side(body: body, contentType: request.fields[.contentType]))
        return Reissue(request, body: body, resource: resource).creating(object)
    }
}

extension ConflictVerdict {
    /// Whether it would send what has just been refused, or send once too often.
    fileprivate func isRepetition(of met: ConflictCase) -> Bool {
        guard case .resend(let resend) = action else { return false }
        if met.rounds >= ConflictCase.roundLimit { return true }
        return met.cause != .seen && resend.request == met.request && resend.body == met.body
    }
}

extension Timestamp {
    /// The moment a member such as `updatedAt` names: RFC 3339, an HTTP date, or seconds or milliseconds since the epoch.
    fileprivate init?(_ value: JSONValue) {
        if let text = value.string, let moment = RFC3339.parse(text) ?? HTTPDate.parse(text) {
            self = moment
        } else if let number = value.integer {
            // Seconds until the year 5138, milliseconds since 1973.
            self = abs(number.clamped) < 100_000_000_000 ? Timestamp(seconds: number) : Timestamp(milliseconds: number)
        } else {
            return nil
        }
    }
}

extension Int64 {
    /// With an opposite in the same range.
    fileprivate var clamped: Int64 { Swift.max(self, -.max) }
}
