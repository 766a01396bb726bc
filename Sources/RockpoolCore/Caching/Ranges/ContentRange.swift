// `Content-Range`: the position of a 206's content in the whole, or the length of the whole in a 416 (RFC 9110 §14.4).

/// The value of `Content-Range`, in bytes.
package enum ContentRange: Hashable, Sendable {
    /// These bytes, never empty, of a whole of `length`; nil if the length is unknown.
    case part(Range<Int64>, of: Int64?)
    /// `bytes */len`: no requested byte exists.
    case unsatisfied(length: Int64)

    /// Nil if the unit is not bytes, or the value is malformed or contradicts itself.
    package init?(_ value: String) {
        let words = value.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, FieldByte.equal(words[0].utf8, "bytes".utf8) else { return nil }
        let sides = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let length = Self.number(in: sides[1])
        guard length != nil || sides[1] == "*" else { return nil }
        if sides[0] == "*" {
            guard let length else { return nil }
            self = .unsatisfied(length: length)
            return
        }
        let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(in: ends[0]), let last = Self.number(in: ends[1]), first <= last,
            last < length ?? .max
        else { return nil }
        self = .part(first..<last + 1, of: length)
    }

    /// The enclosed bytes; nil for `.unsatisfied`.
    package var range: Range<Int64>? {
        if case .part(let range, _) = self { range } else { nil }
    }

    /// The length of the whole; nil if unknown.
    package var length: Int64? {
        switch self {
        case .part(_, let length): length
        case .unsatisfied(let length): length
        }
    }

    /// The value in field syntax.
    package var fieldValue: String {
        switch self {
        case .part(let range, let length): "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length.map(String.init) ?? "*")"
        case .unsatisfied(let length): "bytes */\(length)"
        }
    }

    /// Digits that fit into 64 bits; a longer number is rejected.
    private static func number(in text: Substring) -> Int64? { text.isDigits ? Int64(text) : nil }
}
