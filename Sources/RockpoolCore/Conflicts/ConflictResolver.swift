// The possible outcomes of a conflict, for a strategy's or a person's decision (docs/outbox.md#decisions). Nil means that the outcome is
// not possible.
import HTTPTypes

struct ConflictResolver {
    let met: ConflictCase
    let sides: ConflictSides
    let reissue: RequestRewriter

    init(_ met: ConflictCase) {
        self.met = met
        sides = ConflictSides(met)
        reissue = RequestRewriter(met.request, body: met.body, resource: met.resource)
    }

    func followed(_ course: Resource.Conflict.Course) -> ConflictVerdict? {
        switch course {
        case .theirs: theirs()
        case .mine: mine()
        case .newer: met.mineIsNewer.flatMap { $0 ? mine() : theirs() }
        case .merge: merged()
        case .both: both()
        case .ask: nil
        }
    }

    /// Keeps the upstream's state.
    func theirs() -> ConflictVerdict {
        verdict(.yield, side: sides.theirsSide, object: sides.theirs, resolution: .theirs)
    }

    /// Applies the client's write on top of theirs: a PUT replaces the representation, a PATCH changes only the members it names. Over a
    /// deletion the whole representation is recreated.
    func mine() -> ConflictVerdict? {
        guard sides.testsHold else { return nil }
        if met.theirs == .gone { return recreated() }
        switch sides.effect {
        case .remove: return verdict(.resend(reissue.again(over: met.theirs)), result: nil, resolution: .mine)
        case .create:
            guard let mine = sides.mine, let theirs = sides.theirs else { return nil }
            let result = sides.shape.restamped(mine, as: theirs)
            return reissue.putting(result, over: met.theirs).map { verdict(.resend($0), result: result, resolution: .mine) }
        case .patch:
            guard let result = sides.mergedForMine?.merged, let theirs = sides.theirs,
                let resend = reissue.writing(result, over: theirs, state: met.theirs)
            else { break }
            return verdict(.resend(resend), result: result, resolution: .mine)
        case .merge, .replace, .nothing, .become, .unknown: break
        }
        let again = ConflictVerdict.Action.resend(reissue.again(over: met.theirs))
        guard let theirs = sides.theirs else { return verdict(again, side: sides.mineSide, object: nil, resolution: .mine) }
        switch sides.effect {
        case .merge(let patch):
            return verdict(again, result: sides.shape.restamped(sides.shape.merged(theirs, with: patch), as: theirs), resolution: .mine)
        case .replace:
            let result = sides.mine.map { sides.shape.restamped($0, as: theirs) }
            return verdict(again, result: result, resolution: .mine)
        default: return verdict(again, side: sides.mineSide, object: nil, resolution: .mine)
        }
    }

    private func recreated() -> ConflictVerdict? {
        switch met.request.method {
        case .put:
            return verdict(.resend(reissue.again(over: .gone)), side: sides.mineSide, object: sides.mine, resolution: .mine)
        case .patch:
            guard let mine = sides.mine, let resend = reissue.putting(mine, over: .gone) else { return nil }
            return verdict(.resend(resend), result: mine, resolution: .mine)
        default: return nil
        }
    }

    /// Merges by the resource's rules, unless a place is left to a person.
    func merged() -> ConflictVerdict? {
        guard sides.base != nil, sides.testsHold, let theirs = sides.theirs,
            let merge = sides.merged(rules, mineIsNewer: met.mineIsNewer), merge.isResolved
        else { return nil }
        let result = sides.shape.restamped(merge.merged, as: theirs)
        if sides.isSame(result, as: theirs) {
            let isLost = merge.fields.contains(where: \.isConflicting)
            return isLost ? verdict(.yield, result: theirs, resolution: .theirs, fields: merge.fields) : verdict(.delivered)
        }
        return reissue.writing(result, over: theirs, state: met.theirs).map {
            verdict(.resend($0), result: result, resolution: .merged, fields: merge.fields)
        }
    }

    /// Merges the write with an action of its own client. Nil where a value would be lost, which is a conflict like any other.
    func mergedWithOwnAction() -> ConflictVerdict? {
        guard var merged = merged(), !merged.fields.contains(where: \.isConflicting) else { return nil }
        merged.isListed = false
        return merged
    }

    /// Keeps theirs, and creates a new entity from mine.
    func both() -> ConflictVerdict? {
        guard met.request.method != .delete, let side = sides.mineSide, let resend = reissue.creating(sides.mine) else { return nil }
        return verdict(.resend(resend), side: side, object: sides.mine, resolution: .both, fields: listed(in: sides.theirs))
    }

    /// Writes the representation that a person chose.
    func replaced(by result: JSONValue) -> ConflictVerdict? {
        let resend: Resend?
        switch (met.theirs, sides.theirs) {
        case (.present, let theirs?): resend = reissue.writing(result, over: theirs, state: met.theirs)
        default: resend = reissue.putting(result, over: met.theirs)
        }
        return resend.map { verdict(.resend($0), result: result, resolution: .merged) }
    }

    /// Leaves the conflict to a person, and shows the result of the merge rules where they have one.
    func asked() -> ConflictVerdict {
        let merge = sides.merged(rules, mineIsNewer: met.mineIsNewer)
        let result = merge.flatMap { sides.base != nil && $0.isResolved ? $0.merged : nil }
        return verdict(.ask, result: result, fields: merge?.fields ?? sides.writtenFields)
    }

    private var rules: MergeRules { MergeRules(met.resource, asksForCounters: met.mayHaveApplied) }

    // MARK: the record

    func verdict(
        _ action: ConflictVerdict.Action, result: JSONValue? = nil, resolution: Conflict.Resolution? = nil, fields: [MergedField]? = nil
    ) -> ConflictVerdict {
        let type = sides.theirsSide?.contentType ?? sides.mineSide?.contentType
        let side = result.map { Conflict.Side(body: $0.serialized(), contentType: type) }
        return verdict(action, side: side, object: result, resolution: resolution, fields: fields)
    }

    private func verdict(
        _ action: ConflictVerdict.Action, side: Conflict.Side?, object: JSONValue?, resolution: Conflict.Resolution?,
        fields: [MergedField]? = nil
    ) -> ConflictVerdict {
        var detection = met.detection
        if case .resend(let resend) = action, resend.detection == .weak { detection = .weak }
        return ConflictVerdict(
            kind: sides.kind, detection: detection, base: sides.baseSide, mine: sides.mineSide, theirs: sides.theirsSide, result: side,
            fields: fields ?? listed(in: object), resolution: resolution, decidedBy: resolution == nil ? nil : .strategy, action: action,
            isAsMeant: isAsMeant(action, result: object))
    }

    private func isAsMeant(_ action: ConflictVerdict.Action, result: JSONValue?) -> Bool {
        let standing: JSONValue?
        switch action {
        case .ask: return false
        case .yield where met.request.method == .delete: return false
        case .delivered, .yield: standing = sides.theirs
        case .resend(let resend):
            if resend.request.method == .post { return false }
            standing = result
        }
        if met.request.method == .delete { return standing == nil }
        return standing.flatMap { standing in sides.mine.map { sides.isSame(standing, as: $0) } } ?? false
    }

    /// Returns every place that differs, with its value in the result.
    private func listed(in result: JSONValue?) -> [MergedField] {
        let fields = sides.merged(MergeRules(met.resource, always: .server))?.fields ?? sides.writtenFields
        return fields.map { field in
            var field = field
            field.merged = result.flatMap(field.pointer.get)
            return field
        }
    }
}
