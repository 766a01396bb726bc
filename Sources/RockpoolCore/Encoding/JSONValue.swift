// JSON without loss: numbers keep their digits, objects the order of their members (RFC 8259; docs/architecture.md#parts).
import OrderedCollections

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

/// An object's members (RFC 8259 §4): accessible by name, iterated in order, compared without regard to order.
package struct JSONObject: Sendable {
    private var members: OrderedDictionary<Name, JSONValue> = [:]

    package init() {}

    /// Of members with the same name, the value of the last is kept at the position of the first.
    package init(_ members: some Sequence<(String, JSONValue)>) {
        for (name, value) in members { self[name] = value }
    }

    /// The number of members.
    package var count: Int { members.count }
    /// True if the object has no members.
    package var isEmpty: Bool { members.isEmpty }
    /// The members' names, in order.
    package var names: [String] { members.keys.map(\.text) }

    /// Setting an existing member keeps its position, a new member is appended, and nil removes.
    package subscript(name: String) -> JSONValue? {
        get { members[Name(text: name)] }
        set { members[Name(text: name)] = newValue }
    }

    /// Names are equal if their code units are (RFC 8259 §8.3); Swift's strings compare by canonical equivalence.
    private struct Name: Hashable, Sendable {
        let text: String

        static func == (a: Self, b: Self) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }
        func hash(into hasher: inout Hasher) { hasher.combine(text) }
    }
}

extension JSONObject: Sequence {
    /// Iterates over the members in order.
    package func makeIterator() -> AnyIterator<(name: String, value: JSONValue)> {
        var base = members.makeIterator()
        return AnyIterator { base.next().map { ($0.key.text, $0.value) } }
    }
}

extension JSONObject: Hashable {
    package static func == (a: Self, b: Self) -> Bool {
        a.count == b.count && a.members.allSatisfy { b.members[$0.key] == $0.value }
    }

    package func hash(into hasher: inout Hasher) {
        // The hash must not depend on the order: members are hashed separately and summed.
        var sum = 0
        for (name, value) in members {
            var own = Hasher()
            own.combine(name)
            own.combine(value)
            sum &+= own.finalize()
        }
        hasher.combine(sum)
    }
}

/// A number stored as its literal. Equality compares exact values, so that `1`, `1.0` and `10e-1` are equal.
package struct JSONNumber: Sendable {
    /// Matches the grammar of RFC 8259 §6.
    package let literal: String

    package init(_ value: Int64) { literal = String(value) }

    /// Nil if `literal` is not a JSON number.
    package init?(literal: String) {
        guard let value = try? JSONValue.parse(Array(literal.utf8)), case .number(let number) = value, number.literal == literal else {
            return nil
        }
        self = number
    }

    /// For the parser, which has checked the grammar.
    init(checked literal: String) { self.literal = literal }

    /// The nearest double; infinite beyond its range.
    package var double: Double { Double(literal) ?? .nan }

    /// Sign, digits without leading and trailing zeros, and the power of ten of the last digit: one form per value. Nil if the exponent
    /// exceeds 64 bits; then only equal literals are equal.
    private var canonical: Canonical? {
        let isNegative = literal.hasPrefix("-")
        let parts = literal.drop { $0 == "-" }.split(maxSplits: 1) { $0 == "e" || $0 == "E" }
        guard let mantissa = parts.first else { return nil }
        let halves = mantissa.split(separator: ".", maxSplits: 1)
        let fraction = halves.count > 1 ? halves[1] : ""
        guard let written = parts.count > 1 ? Int64(parts[1]) : 0 else { return nil }
        var digits = Array(((halves.first ?? "") + fraction).utf8.drop { $0 == UInt8(ascii: "0") })
        if digits.isEmpty { return Canonical(isNegative: false, digits: [], exponent: 0) }
        let length = digits.count
        while digits.last == UInt8(ascii: "0") { digits.removeLast() }
        let (exponent, overflow) = written.addingReportingOverflow(Int64(length - digits.count - fraction.utf8.count))
        return overflow ? nil : Canonical(isNegative: isNegative, digits: digits, exponent: exponent)
    }

    private struct Canonical: Hashable {
        var isNegative: Bool
        var digits: [UInt8]
        var exponent: Int64
    }
}

extension JSONNumber: Hashable {
    package static func == (a: Self, b: Self) -> Bool {
        if a.literal == b.literal { return true }
        guard let x = a.canonical, let y = b.canonical else { return false }
        return x == y
    }

    package func hash(into hasher: inout Hasher) {
        if let canonical { hasher.combine(canonical) } else { hasher.combine(literal) }
    }
}

/// Serialises JSON without spaces, with members in order and numbers in their original form (RFC 8259).
extension JSONValue {
    /// The serialised text in UTF-8.
    package func serialized() -> [UInt8] {
        var out: [UInt8] = []
        write(to: &out)
        return out
    }

    private func write(to out: inout [UInt8]) {
        switch self {
        case .null: out.append(contentsOf: "null".utf8)
        case .bool(let value): out.append(contentsOf: (value ? "true" : "false").utf8)
        case .number(let number): out.append(contentsOf: number.literal.utf8)
        case .string(let string): Self.write(string, to: &out)
        case .array(let elements):
            out.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                element.write(to: &out)
            }
            out.append(UInt8(ascii: "]"))
        case .object(let members):
            out.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                Self.write(member.name, to: &out)
                out.append(UInt8(ascii: ":"))
                member.value.write(to: &out)
            }
            out.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ string: String, to out: inout [UInt8]) {
        let hex = Array("0123456789abcdef".utf8)
        out.append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out.append(contentsOf: [UInt8(ascii: "\\"), byte])
            case 0x0A: out.append(contentsOf: "\\n".utf8)
            case 0x0D: out.append(contentsOf: "\\r".utf8)
            case 0x09: out.append(contentsOf: "\\t".utf8)
            case 0x00..<0x20: out.append(contentsOf: Array("\\u00".utf8) + [hex[Int(byte >> 4)], hex[Int(byte & 15)]])
            default: out.append(byte)
            }
        }
        out.append(UInt8(ascii: "\""))
    }
}

/// JSON values of optional texts.
extension JSONValue {
    /// Returns the string, or null.
    package static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
}

/// Whether two descriptions of one thing contradict each other.
extension JSONValue {
    /// True if every member that both objects have is equal; for other values, if they are equal.
    package func agrees(with other: JSONValue) -> Bool {
        guard let own = object, let others = other.object else { return self == other }
        return own.names.allSatisfy { name in others[name].map { $0 == own[name] } ?? true }
    }
}

/// Times as APIs write them into members such as `updatedAt` and `deletedAt`.
extension Timestamp {
    /// Parses the time in a member such as `updatedAt`; nil for another value. Formats: RFC 3339, an HTTP date, seconds or
    /// milliseconds since the epoch.
    package init?(stated value: JSONValue) {
        if let text = value.string, let moment = RFC3339.parse(text) ?? HTTPDate.parse(text) {
            self = moment
        } else if let number = value.integer {
            // Below 1e11: seconds until the year 5138; from there on: milliseconds since 1973.
            self = abs(number.clamped) < 100_000_000_000 ? Timestamp(seconds: number) : Timestamp(milliseconds: number)
        } else {
            return nil
        }
    }

    /// How far a stated time may lie ahead of the clock of the server that states it.
    package static let tolerance = TimeSpan.minutes(5)

    /// True if a server that shows the time `now` cannot have made a change at this time: it orders no changes (docs/outbox.md#times).
    /// - Parameter now: nil where the server shows no time.
    package func isImpossible(at now: Timestamp?) -> Bool { now.map { self > $0 + Self.tolerance } ?? false }
}

extension Int64 {
    /// The value with `.min` raised by one, so that its negation is in range.
    fileprivate var clamped: Int64 { Swift.max(self, -.max) }
}
