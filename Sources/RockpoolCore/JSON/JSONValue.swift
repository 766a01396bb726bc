// JSON without loss: numbers keep their digits, objects the order of their members (RFC 8259; design §6).

/// A JSON value. Equality is JSON's: members in any order, `1.0` equals `1`, strings by code unit (RFC 8259 §8.3), never by
/// Unicode equivalence, since a merge must see every change.
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
    /// Whether this is `null`.
    package var isNull: Bool { if case .null = self { true } else { false } }
    /// The value when it is a boolean, else nil; likewise for the other kinds below.
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The text of a string.
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The number.
    package var number: JSONNumber? { if case .number(let value) = self { value } else { nil } }
    /// The elements of an array.
    package var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    /// The members of an object.
    package var object: JSONObject? { if case .object(let value) = self { value } else { nil } }
    /// The number as an integer, when it is written as one that fits.
    package var integer: Int64? { number.flatMap { Int64($0.literal) } }

    /// A member of an object, nil when absent or when this is no object. Setting nil removes the member; setting one on a value that
    /// is no object makes it one.
    package subscript(name: String) -> JSONValue? {
        get { object?[name] }
        set {
            var members = object ?? JSONObject()
            members[name] = newValue
            self = .object(members)
        }
    }
}

// No `nil` literal: beside optionals it would turn "remove" into `null`.
extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .number(JSONNumber(value)) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// The last of members with one name stays.
    package init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(JSONObject(members))
    }
}
