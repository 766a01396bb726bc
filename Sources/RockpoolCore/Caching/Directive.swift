// One `name` or `name=argument` of a Cache-Control value, and the tolerant way of finding them (RFC 9111 §5.2).

/// A cache directive as written.
struct Directive: Equatable {
    /// In lower case.
    var name: String
    /// Without its quotes, if it had any; nil without `=`.
    var argument: String?
    /// Whether something stands between its commas that does not belong there.
    var isMalformed = false

    /// The argument as delta-seconds; nil when it is not a non-negative integer.
    var seconds: TimeSpan? { isMalformed ? nil : argument.flatMap { DeltaSeconds.parse($0) } }
}

/// Non-negative whole seconds (RFC 9111 §1.2.2).
enum DeltaSeconds {
    /// What a number too large to hold counts as.
    static let ceiling: Int64 = 2_147_483_648

    /// Digits only, as many as there are; nil for anything else, a sign or a fraction included.
    static func parse(_ text: some StringProtocol) -> TimeSpan? {
        var value: Int64 = 0
        for byte in text.utf8 {
            guard FieldByte.isDigit(byte) else { return nil }
            value = min(value * 10 + Int64(byte - 0x30), ceiling)
        }
        return text.isEmpty ? nil : .seconds(value)
    }
}

/// The directives of a value in order. It never fails: what cannot be read is a malformed directive, and reading goes on behind it,
/// so that a `no-store` after rubbish is still seen.
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

    /// The text between quotes; nil without moving when they are never closed.
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
