// JSON without loss: numbers keep their digits, objects the order of their members (RFC 8259; docs/architecture.md#parts).

/// A JSON value. Equality ignores the order of members and the notation of numbers (`1.0` equals `1`). Strings are compared by code unit
/// (RFC 8259 §8.3), not by Unicode equivalence, because a merge must detect every change.
package enum JSONValue: Sendable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

extension JSONValue: Hashable {
    package static func == (a: JSONValue, b: JSONValue) -> Bool {
        switch (a, b) {
        case (.null, .null): true
        case (.bool(let a), .bool(let b)): a == b
        case (.number(let a), .number(let b)): a == b
        case (.string(let a), .string(let b)): a.utf8.elementsEqual(b.utf8)
        case (.array(let a), .array(let b)): a == b
        case (.object(let a), .object(let b)): a == b
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let value): hasher.combine(value)
        case .number(let value): hasher.combine(value)
        case .string(let value): hasher.combine(value)
        case .array(let elements): hasher.combine(elements)
        case .object(let members): hasher.combine(members)
        }
    }
}

extension JSONValue {
    /// True for `null`.
    package var isNull: Bool { if case .null = self { true } else { false } }
    /// The value if it is a boolean, else nil; the properties below do the same for the other kinds.
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The text of a string.
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The number.
    package var number: JSONNumber? { if case .number(let value) = self { value } else { nil } }
    /// The elements of an array.
    package var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    /// The members of an object.
    package var object: JSONObject? { if case .object(let value) = self { value } else { nil } }
    /// The number as an integer, if its literal is an integer of 64 bits.
    package var integer: Int64? { number.flatMap { Int64($0.literal) } }

    /// A member of an object; nil if it is absent or the value is not an object. Setting nil removes the member; setting a member of a
    /// non-object turns the value into an object.
    package subscript(name: String) -> JSONValue? {
        get { object?[name] }
        set {
            var members = object ?? JSONObject()
            members[name] = newValue
            self = .object(members)
        }
    }
}

// No `nil` literal: with optionals it would turn "remove" into `null`.
extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .number(JSONNumber(value)) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Of members with the same name, the last is kept.
    package init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(JSONObject(members))
    }
}
