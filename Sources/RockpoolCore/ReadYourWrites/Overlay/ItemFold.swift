// An item as its client sees it: the cached representation with the client's own writes applied (docs/outbox.md#reads).
package import HTTPTypes

/// Read-your-writes for items. Computed at every read, never written into the cache.
package enum ItemFold {
    /// The folded response. `last` is the sequence of the last write folded in, for the ETag; `count` is the number of writes folded in,
    /// delivered ones included: the caller counts those still pending.
    package enum Outcome: Hashable, Sendable {
        /// No write changes the item: the cached copy is served as it is, or nothing is known.
        case unchanged
        /// The whole body.
        case present(JSONValue, last: Int64, count: Int)
        /// 404, pending-delete.
        case deleted(last: Int64, count: Int)
        /// The effect of a write cannot be computed: the known body, nil when there is none, to be served with `Rockpool-Dirty: 1`.
        case dirty(JSONValue?, last: Int64, count: Int)
    }

    /// Folds writes into the cached representation (whole body, with its envelope), nil when nothing is stored. `writes` are those of this
    /// item in order of acceptance: all that are open, and delivered ones until the cached copy was fetched after their delivery.
    package static func fold(_ base: JSONValue?, with writes: [FoldedWrite], resource: Resource) -> Outcome {
        let shape = RepresentationShape(resource)
        var item = ItemProjection(base.flatMap(shape.opened).map { .present($0) } ?? .unknown, shape: shape)
        for write in writes { item.apply(write) }
        guard item.count > 0 else { return .unchanged }
        switch item.state {
        case .present(let object):
            let body = shape.closed(object, in: base)
            return item.isDirty
                ? .dirty(body, last: item.last, count: item.count) : .present(body, last: item.last, count: item.count)
        case .absent where !item.isDirty: return .deleted(last: item.last, count: item.count)
        case .absent: return .dirty(nil, last: item.last, count: item.count)
        case .unknown: return .dirty(base, last: item.last, count: item.count)
        }
    }
}

/// The state of one item, without its envelope, while writes are folded into it (docs/outbox.md#reads).
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
        case (.create, .present): return  // a base that shows the item is younger than its creation
        case (.create(let object), _):
            know(.present(shape.completed(object, by: write)))
            isNew = true
        case (.become(let object), _): know(.present(object))
        case (.remove, _):
            know(.absent)
            isNew = false
        case (.replace(let object), .present(let base)): know(.present(replaced(base, by: object)))
        case (.replace(let object), _):
            know(.present(shape.identified(object, as: write)))
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
        var object = shape.kept(object, over: base)
        for pointer in shape.managed where pointer.get(in: object) == nil {
            if let kept = pointer.get(in: base) { pointer.place(kept, in: &object) }
        }
        return shape.identified(object, as: shape.id.get(in: base))
    }
}

// MARK: - Writes

/// One write as folding uses it. Its id and body hold server ids wherever the id map has them.
package struct FoldedWrite: Hashable, Sendable {
    /// The position in acceptance order.
    package var sequence: Int64
    /// POST, PUT, PATCH or DELETE; the effect of any other method is unknown.
    package var method: HTTPRequest.Method
    /// True if it addressed an item; false for a collection, to which a POST adds.
    package var isItem: Bool
    /// The item's id as its representation has it: the server's, or the local one while unmapped. All writes of one item carry the same id;
    /// nil when it has none, as for a create without a local id, and for a singleton.
    package var id: String?
    /// True if representations have the id as a number.
    package var idIsNumber: Bool
    /// The body's media type with its parameters; nil is taken for JSON.
    package var contentType: String?
    /// The body as the client sent it, or with local ids replaced.
    package var body: [UInt8]
    /// The action in the path: `publish` of `POST /notes/17/publish`.
    package var action: String?
    /// The representation in the answer of a delivered write (whole body, with envelope), if it had one.
    package var answer: JSONValue?
    /// True if it has taken effect at the upstream, though the cached copy does not show it yet.
    package var isDelivered: Bool
    /// True if the copy may have its effect already: it was sent without an answer so far, and the copy was asked for after that; or it was
    /// answered, and its effect is just being worked into the copies.
    package var mayBeShown = false
    /// When it was made; nil if that is not known.
    package var madeAt: Timestamp?
    /// The ids that the collection had before a create was sent; nil if they are not known.
    package var idsBefore: Set<String>?
    /// True for a create whose id is the key that its client has chosen: a copy with its effect shows it under that id.
    package var hasChosenKey = false
    /// True if the body could not be read: what the write does is unknown.
    package var isUnreadable = false
    /// True if it addresses the collection itself and creates nothing.
    package var isCollectionWide = false
    /// True if it is about one item that is there; false for a create, and for a write to the collection whose effect on its items is not known.
    var addressesItem: Bool { isItem && !isCollectionWide }
    /// True if it removes every item of the collection.
    var emptiesCollection: Bool { isCollectionWide && method == .delete }

    package init(
        sequence: Int64, method: HTTPRequest.Method, isItem: Bool, id: String?, idIsNumber: Bool = false, contentType: String? = nil,
        body: [UInt8] = [], action: String? = nil, answer: JSONValue? = nil, isDelivered: Bool = false
    ) {
        self.sequence = sequence
        self.method = method
        self.isItem = isItem
        self.id = id?.isEmpty == true ? nil : id
        self.idIsNumber = idIsNumber
        self.contentType = contentType
        self.body = body
        self.action = action
        self.answer = answer
        self.isDelivered = isDelivered
    }

    /// The id as the representation writes it.
    var idValue: JSONValue? {
        id.map { id in idIsNumber ? JSONNumber(literal: id).map(JSONValue.number) ?? .string(id) : .string(id) }
    }

    /// The state of its entity with this write, after those before it; one that is delivered does not count.
    func state(after earlier: EntityState?) -> EntityState? {
        if isDelivered { return earlier }
        return !isItem && !isCollectionWide && method == .post ? .pendingCreate : method.state(after: earlier)
    }
}

extension EntityState {
    /// The state by the writes to one entity in order of acceptance, as they are folded.
    package static func shown(by writes: [FoldedWrite]) -> EntityState? { writes.reduce(nil) { $1.state(after: $0) } }
}

// MARK: - Effects

/// The effect of one write on its item, as far as the request and its answer show it (docs/outbox.md#reads).
enum WriteEffect: Hashable {
    /// A new item, with its id.
    case create(JSONValue)
    /// The upstream's answer contains the item's current representation.
    case become(JSONValue)
    case replace(JSONValue)
    case merge(JSONValue)
    case patch(JSONPatch)
    case remove
    /// The write changes the item in a way that cannot be computed, as an action does whose answer does not show the item.
    case unknown

    /// - Parameter base: the item's object before the write; nil if it is unknown.
    init(_ write: FoldedWrite, base: JSONValue? = nil, shape: RepresentationShape) {
        if write.isCollectionWide {
            self = write.emptiesCollection ? .remove : .unknown
        } else if write.method == .delete, write.isItem, write.action == nil {
            self = .remove
        } else if write.isDelivered, let answer = write.answer.map(shape.unwrapped),
            Self.describes(answer, of: write, base: base, shape: shape)
        {
            let hasID = shape.id.get(in: answer) != nil
            self = write.isItem ? .become(answer) : .create(hasID ? answer : shape.identified(answer, as: write.idValue))
        } else if write.action != nil || write.isUnreadable {
            self = .unknown
        } else {
            self = Self.requested(write, base: base, shape: shape) ?? .unknown
        }
    }

    /// True if an answer is the item's representation: it carries the item's id, or, without any id, every member of the item as it was
    /// known or written. The answer to an action may be anything, unless it carries the item's id.
    static func describes(
        _ answer: JSONValue, of write: FoldedWrite, base: JSONValue?, shape: RepresentationShape
    ) -> Bool {
        guard let answered = answer.object else { return false }
        if let id = shape.idText(in: answer) {
            // The answer to a create carries the upstream's id, and the write its local one.
            return write.isItem && write.id != nil ? id == write.id : write.action == nil
        }
        guard write.action == nil else { return false }
        let written = (try? JSONValue.parse(write.body)).map(shape.unwrapped)
        guard let known = (write.method == .patch ? base : nil)?.object ?? written?.object ?? base?.object else { return false }
        return known.names.allSatisfy { answered[$0] != nil || shape.id == JSONPointer(tokens: [$0]) }
    }

    private static func requested(_ write: FoldedWrite, base: JSONValue?, shape: RepresentationShape) -> WriteEffect? {
        let type = JSONBodyType(write.contentType)
        guard type != .other, let body = try? JSONValue.parse(write.body) else { return nil }
        let bare = shape.unwrapped(body)
        let object = shape.object(ofWritten: bare)
        switch (write.method, type) {
        case (.post, .json), (.post, .otherJSON):
            return write.isItem || object.object == nil ? nil : .create(shape.identified(object, as: write))
        case (.put, .json), (.put, .otherJSON):
            guard write.isItem else { return nil }
            // What is beside the content stays.
            let isPart = base != nil && shape.isContentAlone(bare)
            guard isPart else { return .replace(object) }
            return .patch(JSONPatch([.add(shape.kept(bare, over: base.flatMap(shape.content.get)), at: shape.content)]))
        case (.patch, .json) where body.object == nil: return nil
        case (.patch, .otherJSON) where object.object == nil || object.namesOperations: return nil
        case (.patch, .json), (.patch, .otherJSON), (.patch, .mergePatch): return write.isItem ? .merge(object) : nil
        case (.patch, .jsonPatch):
            guard write.isItem, let patch = try? JSONPatch(document: body) else { return nil }
            return .patch(patch.within(shape.envelope).beginning(with: shape.content))
        default: return nil
        }
    }
}

extension JSONValue {
    /// True for a document of operations, as SCIM and FHIR send them with their own media types.
    fileprivate var namesOperations: Bool { self["Operations"]?.array != nil || self["resourceType"] == "Parameters" }
}

extension JSONPatch {
    /// Returns the patch of the content alone as one of the object; one that names the content is of the object already.
    fileprivate func beginning(with content: JSONPointer) -> JSONPatch {
        let isWhole = operations.contains { operation in
            operation.moved { $0.tokens.starts(with: content.tokens) ? nil : $0 } == nil
        }
        guard !content.tokens.isEmpty, !isWhole else { return self }
        return JSONPatch(operations.map { operation in operation.moved { JSONPointer(tokens: content.tokens + $0.tokens) } ?? operation })
    }

    /// Returns the patch relative to `envelope` when all its paths are inside it; otherwise its paths are already relative to the object.
    fileprivate func within(_ envelope: JSONPointer) -> JSONPatch {
        func inner(_ pointer: JSONPointer) -> JSONPointer? {
            guard pointer.tokens.starts(with: envelope.tokens) else { return nil }
            return JSONPointer(tokens: Array(pointer.tokens.dropFirst(envelope.tokens.count)))
        }
        var changes: [JSONPatch.Operation] = []
        for operation in operations {
            guard let change = operation.moved(by: inner) else { return self }
            changes.append(change)
        }
        return JSONPatch(changes)
    }
}

extension JSONPatch.Operation {
    /// Returns the operation with its pointers mapped by `place`; nil when `place` returns nil for one of them.
    fileprivate func moved(by place: (JSONPointer) -> JSONPointer?) -> Self? {
        switch self {
        case .add(let value, let path): place(path).map { .add(value, at: $0) }
        case .remove(let path): place(path).map { .remove($0) }
        case .replace(let path, let value): place(path).map { .replace($0, with: value) }
        case .test(let path, let value): place(path).map { .test($0, equals: value) }
        case .move(let source, let target): place(source).flatMap { source in place(target).map { .move(source, to: $0) } }
        case .copy(let source, let target): place(source).flatMap { source in place(target).map { .copy(source, to: $0) } }
        }
    }
}
