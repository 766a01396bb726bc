// JSON Patch: changes to a JSON value, applied in sequence, all of them or none (RFC 6902).

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
