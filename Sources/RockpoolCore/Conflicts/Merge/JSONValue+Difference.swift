// The difference between two JSON values, in the two patch formats (RFC 7396, RFC 6902).

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
