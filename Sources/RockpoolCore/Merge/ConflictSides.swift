// The three sides of a conflict as JSON, and how they stand to each other (outbox.md §1.6).
import HTTPTypes

struct ConflictSides {
    let shape: RepresentationShape
    let kind: Conflict.Kind
    /// What the write does, by its request alone.
    let effect: WriteEffect
    /// The bare objects; nil for what is not there, not known, or no JSON object.
    let base, mine, theirs: JSONValue?
    private let met: ConflictCase

    init(_ met: ConflictCase) {
        let shape = RepresentationShape(met.resource)
        let templates = ResourceTemplates(met.resource)
        let match = templates.match(met.request.segments) ?? templates.matchAction(met.request.segments)
        let write = FoldedWrite(
            sequence: 0, method: met.request.method, isItem: match?.isItem ?? (met.request.method != .post), id: nil,
            contentType: met.request.fields[.contentType], body: met.body, action: match?.action)
        let isWhole = met.body.count <= ConflictCase.sizeLimit
        self.met = met
        self.shape = shape
        effect = isWhole || met.request.method == .delete ? WriteEffect(write, shape: shape) : .unknown
        base = met.base.flatMap(shape.object)
        theirs = met.theirs.side.flatMap(shape.object)
        kind = Self.kind(met, isItem: write.isItem)
        var item = ItemProjection(base.map { .present($0) } ?? .unknown, shape: shape)
        if isWhole { item.apply(write) }
        if !item.isDirty, item.count > 0, case .present(let object) = item.state, object.object != nil { mine = object } else { mine = nil }
    }

    private static func kind(_ met: ConflictCase, isItem: Bool) -> Conflict.Kind {
        if met.request.method == .delete { return .deleteEdit }
        if met.request.method == .post && !isItem || met.request.createsOnly { return .createCreate }
        return met.theirs == .gone ? .editDelete : .editEdit
    }

    // MARK: how they stand to each other

    /// Whether the upstream shows what was meant: what is not ours to write aside, nothing of the write is missing there.
    var isDelivered: Bool {
        guard case .present(let side, _) = met.theirs else { return met.request.method == .delete }
        guard let theirs else { return met.request.method == .put && side.body == met.body }
        if met.mayHaveApplied, showsMyChanges(theirs) { return true }
        switch effect {
        case .replace(let object), .create(let object): return shows(object, in: theirs)
        case .merge(let patch): return isSame(theirs.merging(patch), theirs)
        case .patch:
            return mergedForMine.map { isSame($0.merged, theirs) } ?? false
        case .nothing, .become, .remove, .unknown: return false
        }
    }

    /// Whether everything that mine sets to another value than the base's stands there: of an attempt that may have been applied it is the
    /// trace, whatever the upstream keeps of members that a PUT leaves out.
    private func showsMyChanges(_ theirs: JSONValue) -> Bool {
        guard let mine = mine.map(shape.unstamped)?.object, let base = base?.object else { return false }
        let changed = mine.filter { base[$0.name] != $0.value }
        return !changed.isEmpty && changed.allSatisfy { theirs[$0.name] == $0.value }
    }

    /// Every member the object sets is there, and what it leaves out of the base is not. Others may be the upstream's defaults, unless it
    /// sets none.
    private func shows(_ object: JSONValue, in theirs: JSONValue) -> Bool {
        guard let set = shape.unstamped(object).object, let shown = shape.unstamped(theirs).object else { return false }
        let dropped = (base?.object?.names ?? []).filter { mine?[$0] == nil }
        if set.isEmpty != shown.isEmpty { return false }
        return set.allSatisfy { shown[$0.name] == $0.value } && dropped.allSatisfy { shown[$0] == nil }
    }

    /// Whether nobody else has changed it: the upstream only wants a condition, or another one.
    var isUnmoved: Bool {
        guard case .present(let theirs, _) = met.theirs, let base = met.base else { return met.theirs == .gone && met.request.createsOnly }
        return !ConflictPrecheck.hasMoved(from: base, to: theirs, met.resource)
    }

    func isSame(_ a: JSONValue, _ b: JSONValue) -> Bool { shape.unstamped(a) == shape.unstamped(b) }

    /// Whether what a JSON Patch demands of the state it is applied to holds of theirs: `test` is its client's own lock (RFC 6902 §4.6).
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

    /// Nil unless mine and theirs are JSON objects.
    func merged(_ rules: MergeRules, mineIsNewer: Bool? = nil) -> ThreeWayMerge? {
        guard let mine, let theirs else { return nil }
        return ThreeWayMerge(base: base, mine: mine, theirs: theirs, rules: rules, mineIsNewer: mineIsNewer)
    }

    /// My changes, all of them, on theirs; nil where they are not known.
    var mergedForMine: ThreeWayMerge? {
        base == nil ? nil : merged(MergeRules(met.resource, always: .client))
    }

    // MARK: what is kept

    var baseSide: Conflict.Side? { met.base.map { side in base.map { shape.side($0, of: side) } ?? side } }
    var theirsSide: Conflict.Side? { met.theirs.side.map { side in theirs.map { shape.side($0, of: side) } ?? side } }

    /// What the write means the entity to be; its bytes, where they are no JSON and all of it.
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
    /// With the validator of its head, where it has none itself.
    var side: Conflict.Side? {
        guard case .present(var side, let head) = self else { return nil }
        side.etag = side.etag ?? head.fields[.eTag]
        return side
    }
}

extension RequestHead {
    /// Whether it may only create (RFC 9110 §13.1.2).
    var createsOnly: Bool { fields[.ifNoneMatch].map { FieldList.trimmed($0[...]) } == "*" }
}

extension RepresentationShape {
    /// The object of a side; nil when it is no JSON, or too large to be read as such.
    func object(of side: Conflict.Side) -> JSONValue? {
        guard JSONBodyType(side.contentType) != .other,
            let body = try? JSONValue.parse(side.body, sizeLimit: ConflictCase.sizeLimit)
        else { return nil }
        let object = unwrapped(body)
        return object.object == nil ? nil : object
    }

    /// A side made bare; as it was written where it is.
    func side(_ object: JSONValue, of side: Conflict.Side) -> Conflict.Side {
        if envelope.tokens.isEmpty { return side }
        return Conflict.Side(body: object.serialized(), contentType: side.contentType, etag: side.etag)
    }

    /// Without what the upstream alone writes: what remains is what people changed.
    func unstamped(_ object: JSONValue) -> JSONValue {
        stamps.reduce(into: object) { object, place in place.remove(from: &object) }
    }

    /// With theirs of what the upstream alone writes.
    func restamped(_ object: JSONValue, as theirs: JSONValue) -> JSONValue {
        stamps.reduce(into: object) { object, place in
            if let theirs = place.get(in: theirs) { place.place(theirs, in: &object) } else { place.remove(from: &object) }
        }
    }
}
