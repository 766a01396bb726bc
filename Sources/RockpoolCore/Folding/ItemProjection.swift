// One item while writes are folded over it, without its envelope (outbox.md §1.5).

struct ItemProjection {
    /// What is known of the item.
    enum State: Hashable {
        /// Nothing: it may exist.
        case unknown
        case absent
        case present(JSONValue)
    }

    let shape: RepresentationShape
    private(set) var state: State
    /// Whether a write changed it in a way that is not in `state`.
    private(set) var isDirty = false
    /// Whether a create began what is there now.
    private(set) var isNew = false
    /// The last write that was folded in; 0 before any was.
    private(set) var last: Int64 = 0
    /// Writes folded in.
    private(set) var count = 0

    init(_ state: State, shape: RepresentationShape) {
        self.state = state
        self.shape = shape
    }

    /// Takes the writes of one item, in order of acceptance.
    mutating func apply(_ write: FoldedWrite) {
        let effect = WriteEffect(write, shape: shape)
        switch (effect, state) {
        case (.nothing, _), (.create, .present): return  // a base that shows the item is younger than its creation
        case (.create(let object), _):
            know(.present(object))
            isNew = true
        case (.become(let object), _): know(.present(object))
        case (.remove, _):
            know(.absent)
            isNew = false
        case (.replace(let object), .present(let base)): know(.present(replaced(base, by: object)))
        case (.replace(let object), _):
            // The body's own form of the id is the one its client knows.
            know(.present(shape.idText(object) == write.id ? object : shape.identified(object, as: write.idValue)))
        case (.merge(let patch), .present(let base)): state = .present(shape.identified(base.merging(patch), as: shape.id.get(in: base)))
        case (.patch(let patch), .present(let base)):
            if let patched = try? patch.applied(to: base) {
                state = .present(shape.identified(patched, as: shape.id.get(in: base)))
            } else {
                isDirty = true
            }
        case (.merge, .absent), (.patch, .absent): break  // refused where nothing is
        case (.merge, .unknown), (.patch, .unknown), (.unknown, _): isDirty = true
        }
        last = max(last, write.sequence)
        count += 1
    }

    private mutating func know(_ state: State) {
        self.state = state
        isDirty = false
    }

    /// A PUT's object with what the upstream keeps when the client leaves it out. The id is the item's whatever the body says, which may
    /// still hold the local one.
    private func replaced(_ base: JSONValue, by object: JSONValue) -> JSONValue {
        guard object.object != nil else { return object }
        var object = object
        for pointer in shape.managed where pointer.get(in: object) == nil {
            if let kept = pointer.get(in: base) { pointer.place(kept, in: &object) }
        }
        return shape.identified(object, as: shape.id.get(in: base))
    }
}
