// Where the content of a 206 belongs in the whole, or how long the whole is that a 416 could not cut (RFC 9110 §14.4).

/// The value of `Content-Range`, in bytes.
package enum ContentRange: Hashable, Sendable {
    /// These bytes, never none, of a whole of `length`; nil when that is not known.
    case part(Range<Int64>, of: Int64?)
    /// `bytes */len`: no byte that was asked for exists.
    case unsatisfied(length: Int64)

    /// Nil when it is not of bytes, cannot be read, or contradicts itself.
    package init?(_ value: String) {
        let words = value.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, FieldByte.equal(words[0].utf8, "bytes".utf8) else { return nil }
        let sides = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let length = Self.number(sides[1])
        guard length != nil || sides[1] == "*" else { return nil }
        if sides[0] == "*" {
            guard let length else { return nil }
            self = .unsatisfied(length: length)
            return
        }
        let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last, last < length ?? .max
        else { return nil }
        self = .part(first..<last + 1, of: length)
    }

    /// The bytes enclosed; nil for none.
    package var range: Range<Int64>? {
        if case .part(let range, _) = self { range } else { nil }
    }

    /// The length of the whole; nil when it is not known.
    package var length: Int64? {
        switch self {
        case .part(_, let length): length
        case .unsatisfied(let length): length
        }
    }

    /// As the field carries it.
    package var fieldValue: String {
        switch self {
        case .part(let range, let length): "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length.map(String.init) ?? "*")"
        case .unsatisfied(let length): "bytes */\(length)"
        }
    }

    /// Digits that fit; a length that does not is no length to compute with.
    private static func number(_ text: Substring) -> Int64? { text.isDigits ? Int64(text) : nil }
}
