// The effect of one write on its item, as far as the request and its answer show it (docs/outbox.md#reads).
import HTTPTypes

enum WriteEffect: Hashable {
    /// An action, which changes nothing unless a rule defines it.
    case nothing
    /// A new item, with its id.
    case create(JSONValue)
    /// The upstream's answer contains the item's current representation.
    case become(JSONValue)
    case replace(JSONValue)
    case merge(JSONValue)
    case patch(JSONPatch)
    case remove
    /// The write changes the item in a way that cannot be computed.
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
        } else if write.action != nil {
            // The copy shows the effect of a delivered action, or is marked as lacking it.
            self = write.isDelivered ? .nothing : .unknown
        } else {
            self = write.isUnreadable ? .unknown : Self.requested(write, base: base, shape: shape) ?? .unknown
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
            return write.isItem || object.object == nil ? nil : .create(shape.identified(object, as: write.idValue))
        case (.put, .json), (.put, .otherJSON):
            guard write.isItem else { return nil }
            // What is beside the content stays.
            let isPart = base != nil && shape.isContentAlone(bare)
            return isPart ? .patch(JSONPatch([.add(bare, at: shape.content)])) : .replace(object)
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
