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
        case .merge, .replace, .become, .unknown: break
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

    // MARK: - The record

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

/// The three sides of a conflict as JSON, and comparisons between them (docs/outbox.md#merging).
struct ConflictSides {
    let shape: RepresentationShape
    let kind: Conflict.Kind
    /// The effect of the write, computed from its request alone.
    let effect: WriteEffect
    /// The objects without envelope; nil where a side is absent, unknown, or not a JSON object.
    let base, mine, theirs: JSONValue?
    private let met: ConflictCase

    init(_ met: ConflictCase) {
        let shape = RepresentationShape(met.resource)
        let templates = ResourceTemplates(met.resource)
        let match = templates.match(target: met.request.target) ?? templates.matchAction(met.request.segments)
        let write = FoldedWrite(
            sequence: 0, method: met.request.method, isItem: match?.isItem ?? (met.request.method != .post), id: nil,
            contentType: met.request.fields[.contentType], body: met.body, action: match?.action)
        let isWhole = met.body.count <= ConflictCase.sizeLimit
        self.met = met
        self.shape = shape
        effect = isWhole || met.request.method == .delete ? WriteEffect(write, shape: shape) : .unknown
        base = met.base.flatMap(shape.object)
        theirs = met.theirs.side.flatMap(shape.object)
        kind = Self.kind(of: met, isItem: write.isItem)
        var item = ItemProjection(base.map { .present($0) } ?? .unknown, shape: shape)
        if isWhole { item.apply(write) }
        if !item.isDirty, item.count > 0, case .present(let object) = item.state, object.object != nil { mine = object } else { mine = nil }
    }

    private static func kind(of met: ConflictCase, isItem: Bool) -> Conflict.Kind {
        if met.request.method == .delete { return .deleteEdit }
        if met.request.method == .post && !isItem || met.request.createsOnly { return .createCreate }
        return met.theirs == .gone ? .editDelete : .editEdit
    }

    // MARK: - Comparisons

    /// True if the upstream shows the intended state: no change of the write is missing, members that only the upstream writes aside.
    var isDelivered: Bool {
        guard case .present(let side, _) = met.theirs else { return met.request.method == .delete }
        guard let theirs else { return met.request.method == .put && side.body == met.body }
        if met.mayHaveApplied, showsMyChanges(theirs) { return true }
        switch effect {
        case .replace(let object), .create(let object): return shows(object, in: theirs)
        case .merge(let patch): return isSame(shape.merged(theirs, with: patch), as: theirs)
        case .patch:
            return mergedForMine.map { isSame($0.merged, as: theirs) } ?? false
        case .become, .remove, .unknown: return false
        }
    }

    /// True if theirs has every value that mine changed from the base: evidence that an earlier attempt was applied, even if the upstream
    /// kept members that a PUT leaves out.
    private func showsMyChanges(_ theirs: JSONValue) -> Bool {
        guard let mine = mine.map(shape.unstamped)?.object, let base = base?.object else { return false }
        let changed = mine.filter { base[$0.name] != $0.value }
        return !changed.isEmpty && changed.allSatisfy { theirs[$0.name] == $0.value }
    }

    /// True if theirs has every member that the object sets and none of the base's members that it drops. Other members may be the
    /// upstream's defaults, unless the object sets none.
    private func shows(_ object: JSONValue, in theirs: JSONValue) -> Bool {
        guard let set = shape.unstamped(object).object, let shown = shape.unstamped(theirs).object else { return false }
        let dropped = (base?.object?.names ?? []).filter { mine?[$0] == nil }
        if set.isEmpty != shown.isEmpty { return false }
        return set.allSatisfy { shown[$0.name] == $0.value } && dropped.allSatisfy { shown[$0] == nil }
    }

    /// True if theirs equals the base: the upstream only requires a condition, or a different one.
    var isUnmoved: Bool {
        guard case .present(let theirs, _) = met.theirs, let base = met.base else { return met.theirs == .gone && met.request.createsOnly }
        return !ConflictPrecheck.hasMoved(from: base, to: theirs, resource: met.resource, by: met.request.method)
    }

    func isSame(_ a: JSONValue, as b: JSONValue) -> Bool { shape.unstamped(a) == shape.unstamped(b) }

    /// True if the `test` operations of a JSON Patch hold for theirs: they are the client's own lock (RFC 6902 §4.6).
    var testsHold: Bool {
        guard case .patch(let patch) = effect, let theirs else { return true }
        do {
            _ = try patch.applied(to: theirs)
            return true
        } catch {
            return error.problem != .testFailed
        }
    }

    // MARK: - Merging

    /// Merges the sides; nil unless mine and theirs are JSON objects.
    func merged(_ rules: MergeRules, mineIsNewer: Bool? = nil) -> ThreeWayMerge? {
        guard let mine, let theirs else { return nil }
        return ThreeWayMerge(base: base, mine: mine, theirs: theirs, rules: rules, mineIsNewer: mineIsNewer)
    }

    /// All changes of mine applied to theirs; nil where they are not known.
    var mergedForMine: ThreeWayMerge? {
        base == nil ? nil : merged(MergeRules(met.resource, always: .client))
    }

    // MARK: - Recorded sides

    /// The members that a merge patch writes: all that is known of mine where the client's base is not.
    var writtenFields: [MergedField] {
        guard mine == nil, case .merge(let patch) = effect, let members = patch.object else { return [] }
        return members.map { member in
            MergedField(
                pointer: JSONPointer(tokens: [member.name]), base: nil, mine: member.value, theirs: theirs?[member.name], merged: nil,
                isConflicting: theirs?[member.name] != member.value)
        }
    }

    var baseSide: Conflict.Side? { met.base.map { side in base.map { shape.side($0, of: side) } ?? side } }
    var theirsSide: Conflict.Side? { met.theirs.side.map { side in theirs.map { shape.side($0, of: side) } ?? side } }

    /// The entity as the write intends it; the request's bytes where they are the whole entity but not JSON.
    var mineSide: Conflict.Side? {
        let type = met.request.fields[.contentType]
        if let mine {
            let isWhole = met.request.method != .patch
            let known = isWhole ? type : theirsSide?.contentType ?? baseSide?.contentType
            return Conflict.Side(body: mine.serialized(), contentType: known ?? "application/json")
        }
        guard met.request.method == .put || kind == .createCreate else { return nil }
        return Conflict.Side(body: met.body, contentType: type)
    }
}

extension ConflictCase.Theirs {
    /// The side with the ETag of its head, where it has none itself.
    var side: Conflict.Side? {
        guard case .present(var side, let head) = self else { return nil }
        side.etag = side.etag ?? head.fields[.eTag]
        return side
    }
}

extension RequestHead {
    /// True if the request may only create (RFC 9110 §13.1.2).
    var createsOnly: Bool { fields[.ifNoneMatch].map { FieldList.trimmed($0[...]) } == "*" }
}

extension RepresentationShape {
    /// Returns the object of a side; nil when it is not JSON, or too large to be parsed.
    func object(of side: Conflict.Side) -> JSONValue? {
        guard JSONBodyType(side.contentType) != .other,
            let body = try? JSONValue.parse(side.body, sizeLimit: ConflictCase.sizeLimit)
        else { return nil }
        let object = unwrapped(body)
        return object.object == nil ? nil : object
    }

    /// Returns a side without its envelope; unchanged where the resource has no envelope.
    func side(_ object: JSONValue, of side: Conflict.Side) -> Conflict.Side {
        if envelope.tokens.isEmpty { return side }
        return Conflict.Side(body: object.serialized(), contentType: side.contentType, etag: side.etag)
    }

    /// Returns the object without the members that the upstream alone writes: the rest was written by clients.
    func unstamped(_ object: JSONValue) -> JSONValue {
        stamps.reduce(into: object) { object, place in place.remove(from: &object) }
    }

    /// Returns the object with the upstream's values in the members that the upstream alone writes.
    func restamped(_ object: JSONValue, as theirs: JSONValue) -> JSONValue {
        stamps.reduce(into: object) { object, place in
            if let theirs = place.get(in: theirs) { place.place(theirs, in: &object) } else { place.remove(from: &object) }
        }
    }
}
