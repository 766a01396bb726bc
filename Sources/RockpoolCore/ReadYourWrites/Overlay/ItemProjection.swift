// The state of one item, without its envelope, while writes are folded into it (docs/outbox.md#reads).

struct ItemProjection {
    /// The known state of the item.
    enum State: Hashable {
        /// Nothing is known: the item may exist.
        case unknown
        case absent
        case present(JSONValue)
    }

    let shape: RepresentationShape
    private(set) var state: State
    /// True if a write changed the item in a way that `state` does not include.
    private(set) var isDirty = false
    /// True if a create produced the current state.
    private(set) var isNew = false
    /// True if a write in the current state is not delivered: its version is a local one.
    private(set) var isLocal = false
    /// What the item waits for; nil if none of its writes is open.
    private(set) var waiting: EntityState?
    /// The sequence of the last write that was folded in; 0 before the first.
    private(set) var last: Int64 = 0
    /// The number of writes folded in.
    private(set) var count = 0

    init(_ state: State, shape: RepresentationShape) {
        self.state = state
        self.shape = shape
    }

    /// Applies one write; the writes of an item are applied in order of acceptance.
    mutating func apply(_ write: FoldedWrite) {
        var base: JSONValue?
        if case .present(let object) = state { base = object }
        let effect = WriteEffect(write, base: base, shape: shape)
        switch (effect, state) {
        case (.nothing, _), (.create, .present): return  // a base that shows the item is younger than its creation
        case (.create(let object), _):
            know(.present(shape.completed(object, by: write)))
            isNew = true
        case (.become(let object), _): know(.present(object))
        case (.remove, _):
            know(.absent)
            isNew = false
        case (.replace(let object), .present(let base)): know(.present(replaced(base, by: object)))
        case (.replace(let object), _):
            // If the body already holds the id, keep its form, which the client knows.
            know(.present(shape.idText(in: object) == write.id ? object : shape.identified(object, as: write.idValue)))
        case (.merge(let patch), .present(let base)):
            state = .present(shape.identified(shape.merged(base, with: patch), as: shape.id.get(in: base)))
        // Applied twice, it would change more than once.
        case (.patch, .present) where write.mayBeShown: isDirty = true
        case (.patch(let patch), .present(let base)):
            if let patched = try? patch.applied(to: base) {
                state = .present(shape.identified(patched, as: shape.id.get(in: base)))
            } else {
                isDirty = true
            }
        case (.merge, .absent), (.patch, .absent): break  // refused where nothing is
        // Until its answer shows that it has restored the item, reads of the item agree with those of its collection.
        case (.unknown, .absent) where write.action != nil: break
        case (.merge, .unknown), (.patch, .unknown), (.unknown, _): isDirty = true
        }
        isLocal = isLocal || !write.isDelivered
        waiting = write.state(after: waiting)
        last = max(last, write.sequence)
        count += 1
    }

    private mutating func know(_ state: State) {
        self.state = state
        isDirty = false
    }

    /// Returns a PUT's object with the members that the upstream keeps when the client omits them. The id is always the item's, because the
    /// body may still hold the local one.
    private func replaced(_ base: JSONValue, by object: JSONValue) -> JSONValue {
        guard object.object != nil else { return object }
        var object = object
        for pointer in shape.managed where pointer.get(in: object) == nil {
            if let kept = pointer.get(in: base) { pointer.place(kept, in: &object) }
        }
        return shape.identified(object, as: shape.id.get(in: base))
    }
}
