// Parses a GraphQL request as far as needed to distinguish reads from writes (GraphQL specification §2.3; GraphQL over HTTP §5).

/// The kind of operation that a request's body selects.
package enum GraphQLOperation: String, Hashable, Sendable {
    case query, mutation, subscription
    /// The body refers to the operation by a hash, or selects none: its kind cannot be determined.
    case unknown

    /// The operation of a request with this body; nil if the body is not a GraphQL request. Of several operations in one body, the first
    /// that is not a query, else the first.
    package static func of(body: [UInt8]) -> GraphQLOperation? {
        guard let document = try? JSONValue.parse(body) else { return nil }
        if let requests = document.array {
            let operations = requests.compactMap { of($0) }
            return operations.first { $0 != .query } ?? operations.first
        }
        return of(document)
    }

    private static func of(_ request: JSONValue) -> GraphQLOperation? {
        guard let text = request["query"]?.string else {
            return request["extensions"]?["persistedQuery"] == nil ? nil : .unknown
        }
        let operations = Self.operations(in: text)
        if let name = request["operationName"]?.string, !name.isEmpty {
            return operations.first { $0.name == name }?.kind ?? .unknown
        }
        return operations.first { $0.kind != .query }?.kind ?? operations.first?.kind
    }

    /// The operations that a document defines, with their names. A selection set without a keyword is a query.
    private static func operations(in document: String) -> [(kind: GraphQLOperation, name: String?)] {
        var found: [(kind: GraphQLOperation, name: String?)] = []
        var words: [String] = []
        var depth = 0
        for token in Tokens(document) {
            switch token {
            case .open:
                if depth == 0, words.first != "fragment" {
                    if let kind = words.first.flatMap(GraphQLOperation.init), kind != .unknown {
                        found.append((kind, words.count > 1 ? words[1] : nil))
                    } else if words.isEmpty {
                        found.append((.query, nil))
                    }
                }
                depth += 1
            case .close:
                depth = max(0, depth - 1)
                if depth == 0 { words = [] }
            case .word(let word): if depth == 0 { words.append(word) }
            }
        }
        return found
    }

    /// Braces and names; parentheses with their content, strings and comments are skipped.
    private struct Tokens: Sequence, IteratorProtocol {
        enum Token { case open, close, word(String) }

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
}
