// The three sides of a conflict as JSON, and comparisons between them (docs/outbox.md#merging).
import HTTPTypes

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

    // MARK: comparisons

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
        case .nothing, .become, .remove, .unknown: return false
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

    // MARK: merging

    /// Merges the sides; nil unless mine and theirs are JSON objects.
    func merged(_ rules: MergeRules, mineIsNewer: Bool? = nil) -> ThreeWayMerge? {
        guard let mine, let theirs else { return nil }
        return ThreeWayMerge(base: base, mine: mine, theirs: theirs, rules: rules, mineIsNewer: mineIsNewer)
    }

    /// All changes of mine applied to theirs; nil where they are not known.
    var mergedForMine: ThreeWayMerge? {
        base == nil ? nil : merged(MergeRules(met.resource, always: .client))
    }

    // MARK: recorded sides

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
