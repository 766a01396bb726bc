// The two patch formats for JSON values, applied and made: JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396).

/// A JSON Patch.
package struct JSONPatch: Hashable, Sendable {
    /// One change.
    package enum Operation: Hashable, Sendable {
        case add(JSONValue, at: JSONPointer)
        case remove(JSONPointer)
        case replace(JSONPointer, with: JSONValue)
        case move(JSONPointer, to: JSONPointer)
        case copy(JSONPointer, to: JSONPointer)
        case test(JSONPointer, equals: JSONValue)
    }

    /// In the order of application.
    package let operations: [Operation]

    /// Maximum number of operations in one patch.
    package static let operationLimit = 1000
    /// Maximum number of values copied by all moves and copies of one patch: repeated copies grow exponentially.
    package static let carriedCount = 1 << 17

    package init(_ operations: [Operation]) { self.operations = operations }

    /// Parses a patch document (§3, §4). Members that no operation defines are ignored. Throws the kind of error and the index of the
    /// operation.
    package init(document: JSONValue) throws(JSONPatchError) {
        guard let elements = document.array else { throw JSONPatchError(.notAPatch) }
        guard elements.count <= Self.operationLimit else { throw JSONPatchError(.tooLarge, operation: Self.operationLimit) }
        var operations: [Operation] = []
        for (index, element) in elements.enumerated() {
            operations.append(try Self.operation(from: element, at: index))
        }
        self.operations = operations
    }

    /// `value` with every operation applied. Throws for the first operation that fails; then no operation takes effect (§5).
    package func applied(to value: JSONValue) throws(JSONPatchError) -> JSONValue {
        var application = JSONPatchApplication(value: value)
        for (index, operation) in operations.enumerated() {
            if let problem = application.apply(operation) { throw JSONPatchError(problem, operation: index) }
        }
        return application.value
    }

    private static func operation(from element: JSONValue, at index: Int) throws(JSONPatchError) -> Operation {
        guard let members = element.object else { throw JSONPatchError(.notAPatch, operation: index) }
        func pointer(named name: String) throws(JSONPatchError) -> JSONPointer {
            guard let pointer = members[name]?.string.flatMap({ JSONPointer($0) }) else {
                throw JSONPatchError(.badPointer, operation: index)
            }
            return pointer
        }
        func value() throws(JSONPatchError) -> JSONValue {
            guard let value = members["value"] else { throw JSONPatchError(.valueMissing, operation: index) }
            return value
        }
        switch members["op"]?.string {
        case "add": return .add(try value(), at: try pointer(named: "path"))
        case "remove": return .remove(try pointer(named: "path"))
        case "replace": return .replace(try pointer(named: "path"), with: try value())
        case "move": return .move(try pointer(named: "from"), to: try pointer(named: "path"))
        case "copy": return .copy(try pointer(named: "from"), to: try pointer(named: "path"))
        case "test": return .test(try pointer(named: "path"), equals: try value())
        default: throw JSONPatchError(.unknownOperation, operation: index)
        }
    }
}

/// The reason why a document is not a patch, or why the patch does not apply to the value.
package struct JSONPatchError: Error, Hashable, Sendable {
    /// The kind of error, in words.
    package enum Problem: String, Sendable {
        case notAPatch = "not an array of operation objects"
        case unknownOperation = "no known operation"
        case badPointer = "a pointer is missing or malformed"
        case valueMissing = "the value is missing"
        case noTarget = "there is nothing at this place"
        case intoItself = "a value cannot be moved into itself"
        case testFailed = "the value differs from the one expected"
        case tooLarge = "larger or deeper than allowed"
    }

    /// The kind of error.
    package var problem: Problem
    /// The index of the failing operation, from 0; nil if the document as a whole is not a patch.
    package var operation: Int?

    package init(_ problem: Problem, operation: Int? = nil) {
        self.problem = problem
        self.operation = operation
    }
}

/// Applies one JSON Patch to a value: the six operations (RFC 6902 §4), with limits on size and depth.
struct JSONPatchApplication {
    private(set) var value: JSONValue
    private var carried = 0

    init(value: JSONValue) { self.value = value }

    /// Applies the operation; returns the reason if it fails, else nil.
    mutating func apply(_ operation: JSONPatch.Operation) -> JSONPatchError.Problem? {
        switch operation {
        case .add(let new, let path):
            return add(new, at: path)
        case .remove(let path):
            return path.remove(from: &value) ? nil : .noTarget
        case .replace(let path, let new):
            guard path.get(in: value) != nil else { return .noTarget }
            guard Self.fits(new, at: path) else { return .tooLarge }
            return path.set(new, in: &value) ? nil : .noTarget
        case .move(let source, let target):
            guard let moved = source.get(in: value) else { return .noTarget }
            if target.tokens.starts(with: source.tokens, by: { $0.utf8.elementsEqual($1.utf8) }) {
                return target.tokens.count == source.tokens.count ? nil : .intoItself
            }
            guard carry(moved) else { return .tooLarge }
            return source.remove(from: &value) ? add(moved, at: target) : .noTarget
        case .copy(let source, let target):
            guard let copied = source.get(in: value) else { return .noTarget }
            return carry(copied) ? add(copied, at: target) : .tooLarge
        case .test(let path, let expected):
            guard let found = path.get(in: value) else { return .noTarget }
            return found == expected ? nil : .testFailed
        }
    }

    /// §4.1: adds a member, replaces a member's value, inserts an element before the one at its index, or replaces the whole value.
    private mutating func add(_ new: JSONValue, at path: JSONPointer) -> JSONPatchError.Problem? {
        guard Self.fits(new, at: path) else { return .tooLarge }
        let parent = JSONPointer(tokens: path.tokens.dropLast())
        guard let last = path.tokens.last, case .array(var elements) = parent.get(in: value) else {
            return path.set(new, in: &value) ? nil : .noTarget
        }
        guard let index = last == "-" ? elements.count : JSONPointer.index(of: last), index <= elements.count else { return .noTarget }
        elements.insert(new, at: index)
        return parent.set(.array(elements), in: &value) ? nil : .noTarget
    }

    private static func fits(_ new: JSONValue, at path: JSONPointer) -> Bool {
        path.tokens.count + new.extent.depth <= JSONValue.depthLimit
    }

    /// Counts the values of `moved`; false if the patch exceeds `carriedCount`.
    private mutating func carry(_ moved: JSONValue) -> Bool {
        carried += moved.extent.values
        return carried <= JSONPatch.carriedCount
    }
}

extension JSONValue {
    /// The number of contained values, including the value itself, and the nesting depth of arrays and objects.
    fileprivate var extent: (values: Int, depth: Int) {
        let children: [JSONValue]
        switch self {
        case .array(let elements): children = elements
        case .object(let members): children = members.map(\.value)
        default: return (1, 0)
        }
        return children.reduce(into: (values: 1, depth: 1)) { total, child in
            let extent = child.extent
            total = (total.values + extent.values, max(total.depth, extent.depth + 1))
        }
    }
}

/// JSON Merge Patch (RFC 7396): null removes, objects merge, everything else replaces.
extension JSONValue {
    /// This value with `patch` applied.
    package func merging(_ patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var members = object ?? JSONObject()
        for (name, change) in changes {
            members[name] = change.isNull ? nil : (members[name] ?? .null).merging(change)
        }
        return .object(members)
    }
}

/// Composes patches before the first of them is sent (docs/outbox.md#squash: they do not always compose). If the upstream may replace a
/// member by an object in the patch instead of merging it (`.shallow`, as many do with `application/json`), only patches with the same
/// effect under both interpretations are composed.
struct MergePatchComposition {
    enum Reading { case merge, shallow }

    let reading: Reading

    /// The patch with the effect of `earlier` followed by `later`; nil if there is none: an object after a non-object starts from an empty
    /// object, but in one patch it would be merged into the existing value.
    func composed(earlier: JSONValue, later: JSONValue) -> JSONValue? {
        guard case .object(let changes) = later else { return reading == .merge ? later : nil }
        guard case .object(var members) = earlier else { return nil }
        for (name, change) in changes {
            if let before = members[name], change.object != nil {
                guard reading == .merge, let both = composed(earlier: before, later: change) else { return nil }
                members[name] = both
            } else {
                members[name] = change
            }
        }
        return .object(members)
    }

    /// The object that results from a PUT of `object` followed by `patch`; nil if it depends on the upstream: members omitted by the PUT
    /// may still exist there, so that removing one or merging into it differs from omitting it.
    func applied(_ patch: JSONValue, to object: JSONValue) -> JSONValue? {
        guard case .object(let changes) = patch, case .object(var members) = object else { return nil }
        for (name, change) in changes {
            if change.object == nil, !change.isNull {
                members[name] = change
                continue
            }
            guard reading == .merge, let before = members[name] else { return nil }
            if change.isNull {
                members[name] = nil
            } else if before.object == nil {
                members[name] = before.merging(change)
            } else {
                guard let both = applied(change, to: before) else { return nil }
                members[name] = both
            }
        }
        return .object(members)
    }
}

/// The difference between two JSON values, in the two patch formats (RFC 7396, RFC 6902).
extension JSONValue {
    /// Returns the merge patch from this object to `target`; nil where there is none, because a merge patch cannot store null.
    ///
    /// A `.shallow` reader may take an object in the patch for the member's whole new value: then the patch contains the whole new value,
    /// and is nil where something had to be removed within it.
    func mergePatch(to target: JSONValue, reading: MergePatchComposition.Reading) -> JSONValue? {
        guard let old = object, let new = target.object else { return nil }
        var patch = JSONObject()
        for (name, value) in new where old[name] != value {
            if let before = old[name], before.object != nil, value.object != nil {
                guard let inner = before.mergePatch(to: value, reading: .merge) else { return nil }
                if reading == .shallow, !value.isStorable || before.merging(value) != value { return nil }
                patch[name] = reading == .merge ? inner : value
            } else {
                guard value.isStorable else { return nil }
                patch[name] = value
            }
        }
        for name in old.names where new[name] == nil { patch[name] = .null }
        return .object(patch)
    }

    /// True if a merge patch can carry the value: it has no null outside arrays.
    private var isStorable: Bool {
        switch self {
        case .null: false
        case .object(let members): members.allSatisfy(\.value.isStorable)
        default: true
        }
    }

    /// Returns the operations from this value to `target`: objects member by member, anything else as a whole.
    func operations(to target: JSONValue, at place: JSONPointer = JSONPointer(tokens: [])) -> [JSONPatch.Operation] {
        guard let old = object, let new = target.object else { return self == target ? [] : [.replace(place, with: target)] }
        let removed = old.names.filter { new[$0] == nil }.map { JSONPatch.Operation.remove(JSONPointer(tokens: place.tokens + [$0])) }
        return removed
            + new.flatMap { name, value in
                let member = JSONPointer(tokens: place.tokens + [name])
                return old[name].map { $0.operations(to: value, at: member) } ?? [.add(value, at: member)]
            }
    }
}

extension JSONPatch {
    /// The patch in the format of RFC 6902 §3.
    var document: JSONValue { .array(operations.map(\.document)) }
}

extension JSONPatch.Operation {
    fileprivate var document: JSONValue {
        switch self {
        case .add(let value, let path): ["op": "add", "path": .string(path.text), "value": value]
        case .remove(let path): ["op": "remove", "path": .string(path.text)]
        case .replace(let path, let value): ["op": "replace", "path": .string(path.text), "value": value]
        case .move(let source, let path): ["op": "move", "from": .string(source.text), "path": .string(path.text)]
        case .copy(let source, let path): ["op": "copy", "from": .string(source.text), "path": .string(path.text)]
        case .test(let path, let value): ["op": "test", "path": .string(path.text), "value": value]
        }
    }
}

// MARK: - Pointers

/// A JSON Pointer: `""` is the whole value, `/a/0` the first element of member `a`.
package struct JSONPointer: Hashable, Sendable {
    /// The reference tokens, unescaped.
    package var tokens: [String]

    package init(tokens: [String]) { self.tokens = tokens }

    /// Nil unless empty or starting with `/`, with `~` only in `~0` and `~1`.
    package init?(_ text: String) {
        guard !text.isEmpty else {
            self.init(tokens: [])
            return
        }
        // Splits by scalars: a slash and a combining mark that starts a name form a single character.
        guard text.utf8.first == UInt8(ascii: "/") else { return nil }
        var tokens: [String] = []
        for raw in text.unicodeScalars.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let token = Self.unescaped(raw) else { return nil }
            tokens.append(token)
        }
        self.init(tokens: tokens)
    }

    /// The pointer in the syntax of RFC 6901 §3.
    package var text: String {
        tokens.map { "/" + $0.escaping(["~": "~0", "/": "~1"]) }.joined()
    }

    /// The value at this location; nil if there is none.
    package func get(in value: JSONValue) -> JSONValue? {
        var current = value
        for token in tokens {
            switch current {
            case .object(let members):
                guard let member = members[token] else { return nil }
                current = member
            case .array(let elements):
                guard let index = Self.index(of: token), index < elements.count else { return nil }
                current = elements[index]
            default: return nil
            }
        }
        return current
    }

    /// Sets the value at this location: replaces the existing value, adds a member, or appends to an array (`-` or its count). Returns
    /// false, without a change, if the parent does not exist or the array index is out of range.
    @discardableResult
    package func set(_ new: JSONValue, in value: inout JSONValue) -> Bool {
        Self.update(&value, at: tokens[...]) { _ in new }
    }

    /// Removes the value at this location from its parent. False if there is none, or if the pointer refers to the whole value.
    @discardableResult
    package func remove(from value: inout JSONValue) -> Bool {
        guard !tokens.isEmpty, get(in: value) != nil else { return false }
        return Self.update(&value, at: tokens[...]) { _ in nil }
    }

    private static func update(_ value: inout JSONValue, at path: ArraySlice<String>, _ change: (JSONValue?) -> JSONValue?) -> Bool {
        guard let token = path.first else {
            guard let new = change(value) else { return false }
            value = new
            return true
        }
        let isLast = path.count == 1
        switch value {
        case .object(var members):
            if isLast {
                members[token] = change(members[token])
            } else {
                guard var member = members[token], update(&member, at: path.dropFirst(), change) else { return false }
                members[token] = member
            }
            value = .object(members)
        case .array(var elements):
            guard let index = token == "-" ? elements.count : index(of: token), index <= elements.count else { return false }
            if isLast {
                let new = change(index < elements.count ? elements[index] : nil)
                elements.replaceSubrange(index..<min(index + 1, elements.count), with: new.map { [$0] } ?? [])
            } else {
                guard index < elements.count, update(&elements[index], at: path.dropFirst(), change) else { return false }
            }
            value = .array(elements)
        default: return false
        }
        return true
    }

    /// RFC 6901 §4: digits without a leading zero.
    static func index(of token: String) -> Int? {
        guard token == "0" || token.utf8.first.map({ (0x31...0x39).contains($0) }) ?? false else { return nil }
        return token.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(token) : nil
    }

    private static func unescaped(_ raw: Substring.UnicodeScalarView) -> String? {
        var token = String.UnicodeScalarView()
        var rest = raw
        while let scalar = rest.popFirst() {
            guard scalar == "~" else {
                token.append(scalar)
                continue
            }
            switch rest.popFirst() {
            case "0": token.append("~")
            case "1": token.append("/")
            default: return nil
            }
        }
        return String(token)
    }
}
