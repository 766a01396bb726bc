// Applies one JSON Patch to a value: the six operations (RFC 6902 §4), with limits on size and depth.

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
