// The tokens of a GraphQL document (GraphQL specification §2.1.7).

/// Splits a document into tokens; comments and commas are left out.
struct GraphQLLexer {
    enum Token: Equatable {
        case name(String), string(String), number(String)
        /// One of `{ } ( ) [ ] : $ ! = @ | &`, or `.` for the three dots of a fragment.
        case mark(Character)
    }

    static func tokens(of document: String) -> [Token] {
        var (rest, tokens) = (document[...], [Token]())
        while let first = rest.first {
            if first.isLetter || first == "_" {
                let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
                tokens.append(.name(String(name)))
                rest = rest[name.endIndex...]
            } else if first.isNumber || first == "-" {
                let number = rest.prefix { $0.isNumber || "+-.eE".contains($0) }
                tokens.append(.number(String(number)))
                rest = rest[number.endIndex...]
            } else if first == "\"" {
                tokens.append(.string(string(&rest)))
            } else if first == "#" {
                rest = rest.drop { !$0.isNewline }
            } else if rest.hasPrefix("...") {
                tokens.append(.mark("."))
                rest = rest.dropFirst(3)
            } else {
                if "{}()[]:$!=@|&".contains(first) { tokens.append(.mark(first)) }
                rest = rest.dropFirst()
            }
        }
        return tokens
    }

    private static func string(_ rest: inout Substring) -> String {
        if rest.hasPrefix("\"\"\"") {
            rest = rest.dropFirst(3)
            let end = rest.firstRange(of: "\"\"\"")?.lowerBound ?? rest.endIndex
            defer { rest = rest[end...].dropFirst(3) }
            return String(rest[..<end])
        }
        var text = "\""
        rest = rest.dropFirst()
        while let next = rest.popFirst(), next != "\"" {
            text.append(next)
            if next == "\\", let escaped = rest.popFirst() { text.append(escaped) }
        }
        // The escapes are those of JSON.
        return (try? JSONValue.parse(Array((text + "\"").utf8)))?.string ?? ""
    }
}
