// Scans a GraphQL document as far as its operations and their selections need it (GraphQL specification §2.1).

/// Braces, names and the marks between them; parentheses with their content, strings and comments are skipped.
struct GraphQLTokens: Sequence, IteratorProtocol {
    enum Token: Equatable {
        case open, close, word(String)
        /// `:` after an alias, `@` before a directive, `.` before a fragment.
        case mark(UInt8)
    }

    private var rest: Substring.UTF8View

    init(_ document: String) { rest = Substring(document).utf8 }

    mutating func next() -> Token? {
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "{"): return .open
            case UInt8(ascii: "}"): return .close
            case UInt8(ascii: "("): skipParentheses()
            case UInt8(ascii: "#"): skipComment()
            case UInt8(ascii: "\""): skipString()
            case UInt8(ascii: "_"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
                let tail = rest.prefix { FieldByte.isLetter($0) || $0 == UInt8(ascii: "_") || (0x30...0x39).contains($0) }
                rest = rest.dropFirst(tail.count)
                return .word(String(decoding: [byte] + tail, as: UTF8.self))
            case UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "."): return .mark(byte)
            default: break
            }
        }
        return nil
    }

    /// Skips to the matching parenthesis, because default values of variables may contain braces.
    private mutating func skipParentheses() {
        var depth = 1
        while depth > 0, let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"): depth -= 1
            case UInt8(ascii: "\""): skipString()
            case UInt8(ascii: "#"): skipComment()
            default: break
            }
        }
    }

    private mutating func skipComment() { rest = rest.drop { $0 != 0x0A && $0 != 0x0D } }

    /// Skips the rest of a string after its opening quote: a block string ends with three quotes, any other with one on the same line.
    private mutating func skipString() {
        let quote = UInt8(ascii: "\"")
        let isBlock = rest.starts(with: [quote, quote])
        if isBlock {
            rest = rest.dropFirst(2)
            while !rest.isEmpty, !rest.starts(with: [quote, quote, quote]) {
                rest = rest.dropFirst(rest.starts(with: [UInt8(ascii: "\\"), quote, quote, quote]) ? 4 : 1)
            }
            rest = rest.dropFirst(3)
            return
        }
        while let byte = rest.popFirst(), byte != quote, byte != 0x0A {
            if byte == UInt8(ascii: "\\") { _ = rest.popFirst() }
        }
    }
}
