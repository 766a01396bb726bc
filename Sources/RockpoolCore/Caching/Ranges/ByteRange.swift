// The bytes a request selects: the `Range` field, and its resolution for a given length (RFC 9110 §14.1.2, §14.2).
package import HTTPTypes

/// One byte range as written by the client. Numbers that overflow count as the largest integer.
package enum ByteRange: Hashable, Sendable {
    /// `500-999`, or `500-` to the end.
    case from(Int64, through: Int64?)
    /// `-500`: the last 500.
    case suffix(Int64)

    /// Nil if `text` is not a range, or ends before it begins.
    init?(_ text: Substring) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, !(parts[0].isEmpty && parts[1].isEmpty) else { return nil }
        let last = parts[1].isEmpty ? nil : Self.position(in: parts[1])
        guard last != nil || parts[1].isEmpty else { return nil }
        if parts[0].isEmpty {
            self = .suffix(last ?? 0)
        } else {
            guard let first = Self.position(in: parts[0]), last.map({ $0 >= first }) ?? true else { return nil }
            self = .from(first, through: last)
        }
    }

    /// The selected bytes of a body of `length`; nil if it has none of them.
    package func resolved(length: Int64) -> Range<Int64>? {
        switch self {
        case .from(let first, let last):
            guard first < length else { return nil }
            return first..<min(last ?? .max, length - 1) + 1
        case .suffix(let count):
            guard count > 0, length > 0 else { return nil }
            return length - min(count, length)..<length
        }
    }

    private static func position(in text: Substring) -> Int64? {
        text.isDigits ? text.utf8.reduce(0) { $0.multipliedClamped(by: 10).addedClamped(Int64($1 - 0x30)) } : nil
    }
}

/// The ranges of one `Range` field.
package struct ByteRangeSet: Hashable, Sendable {
    /// At least one, in the requested order.
    package let ranges: [ByteRange]

    /// The maximum number of ranges in a request; a field with more is ignored (RFC 9110 §17.15). Programs that fetch what has changed of a
    /// file ask for tens of them at once.
    package static let limit = 200

    /// Nil for any value to be ignored: another unit, a malformed member, or too many members (RFC 9110 §14.2).
    package init?(_ value: String) {
        guard let equals = value.firstIndex(of: "="), FieldByte.equal(value[..<equals].utf8, "bytes".utf8) else { return nil }
        var ranges: [ByteRange] = []
        for member in value[value.index(after: equals)...].split(separator: ",") {
            let member = member.trimmingOWS()
            if member.isEmpty { continue }
            guard ranges.count < Self.limit, let range = ByteRange(member) else { return nil }
            ranges.append(range)
        }
        guard !ranges.isEmpty else { return nil }
        self.ranges = ranges
    }

    /// The ranges of a request; nil without a `Range` field, or if the field is to be ignored.
    package init?(_ fields: HTTPFields) {
        guard fields.contains(.range), let value = fields.single(.range) else { return nil }
        self.init(value)
    }

    /// The selected bytes of a body of `length`; ranges that overlap or touch are merged at the position of the first (RFC 9110 §15.3.7.2).
    /// Empty if none can be satisfied.
    package func resolved(length: Int64) -> [Range<Int64>] {
        var kept: [Range<Int64>] = []
        for range in ranges.compactMap({ $0.resolved(length: length) }) {
            let touches = { (other: Range<Int64>) in other.lowerBound <= range.upperBound && range.lowerBound <= other.upperBound }
            let place = kept.firstIndex(where: touches) ?? kept.endIndex
            let union = kept.filter(touches).reduce(range) {
                min($0.lowerBound, $1.lowerBound)..<max($0.upperBound, $1.upperBound)
            }
            kept.removeAll(where: touches)
            kept.insert(union, at: place)
        }
        return kept
    }
}
