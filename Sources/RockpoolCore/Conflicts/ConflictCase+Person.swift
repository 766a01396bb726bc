// The resolution of a conflict by a person (docs/reference/behaviour.md#conflicts `resolve`, §6).
import HTTPTypes

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
