// One `name` or `name=argument` of a Cache-Control value, and the tolerant parser for it (RFC 9111 §5.2).

/// A cache directive as written.
struct Directive: Equatable {
    /// In lower case.
    var name: String
    /// Without surrounding quotes; nil without `=`.
    var argument: String?
    /// True if unexpected text stands between the directive and the next comma.
    var isMalformed = false

    /// The argument as delta-seconds; nil if it is not a non-negative integer.
    var seconds: TimeSpan? { isMalformed ? nil : argument.flatMap { DeltaSeconds.parse($0) } }
}

/// Non-negative whole seconds (RFC 9111 §1.2.2).
enum DeltaSeconds {
    /// The value of a number that is too large.
    static let ceiling = Int64(Int32.max) + 1

    /// Parses any number of digits; nil for anything else, including a sign or a fraction.
    static func parse(_ text: some StringProtocol) -> TimeSpan? {
        var value: Int64 = 0
        for byte in text.utf8 {
            guard FieldByte.isDigit(byte) else { return nil }
            value = min(value * 10 + Int64(byte - 0x30), ceiling)
        }
        return text.isEmpty ? nil : .seconds(value)
    }
}

/// The directives of a value in order. Parsing never fails: unreadable text becomes a malformed directive and parsing continues after it,
/// so that a `no-store` behind garbage is still found.
struct DirectiveSequence: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var position = 0

    init(_ value: String) { bytes = Array(value.utf8) }

    mutating func next() -> Directive? {
        while position < bytes.count, !FieldByte.isTokenByte(bytes[position]) { position += 1 }
        guard position < bytes.count else { return nil }
        let name = token().map { String(decoding: $0.map(FieldByte.lowercased), as: UTF8.self) } ?? ""
        var directive = Directive(name: name)
        if position < bytes.count, bytes[position] == FieldByte.equals {
            position += 1
            directive.argument = argument()
        }
        skipSpace()
        directive.isMalformed = position < bytes.count && bytes[position] != FieldByte.comma
        return directive
    }

    private mutating func token() -> ArraySlice<UInt8>? {
        let start = position
        while position < bytes.count, FieldByte.isTokenByte(bytes[position]) { position += 1 }
        return position > start ? bytes[start..<position] : nil
    }

    private mutating func argument() -> String {
        guard position < bytes.count, bytes[position] == FieldByte.quote else {
            return token().map { String(decoding: $0, as: UTF8.self) } ?? ""
        }
        return quoted() ?? ""
    }

    /// The text between quotes; nil, without advancing, if the closing quote is missing.
    private mutating func quoted() -> String? {
        var text: [UInt8] = []
        var index = position + 1
        while index < bytes.count {
            switch bytes[index] {
            case FieldByte.quote:
                position = index + 1
                return String(decoding: text, as: UTF8.self)
            case FieldByte.backslash where index + 1 < bytes.count:
                text.append(bytes[index + 1])
                index += 2
            case let byte:
                text.append(byte)
                index += 1
            }
        }
        return nil
    }

    private mutating func skipSpace() {
        while position < bytes.count, FieldByte.isSpace(bytes[position]) { position += 1 }
    }
}
