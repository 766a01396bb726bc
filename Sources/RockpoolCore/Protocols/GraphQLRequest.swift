// A GraphQL request in the form in which it is keyed, whatever the spelling of its body (GraphQL over HTTP §5;
// docs/reference/configuration.md#routes, `kind: graphql`).

/// The parts of a request that select the response, and the kind of its operation.
package struct GraphQLRequest: Hashable, Sendable {
    /// The kind that the document shows; `unknown` if the request names its document by a hash only.
    package var kind: GraphQLOperation
    package var operationName: String?
    /// The document; nil if it is named by its hash.
    package var document: String?
    /// The SHA-256 of the document in hexadecimal, as the client states it (automatic persisted queries).
    package var hash: String?
    /// The variables, null if there are none.
    package var variables: JSONValue

    /// Reads a request's body. Nil if it is not one request: not JSON, a batch, or without a document and a hash.
    package init?(body: [UInt8]) {
        guard let request = try? JSONValue.parse(body), request.object != nil, let kind = GraphQLOperation.of(body: body) else {
            return nil
        }
        self.kind = kind
        operationName = request["operationName"]?.string
        document = request["query"]?.string
        hash = request["extensions"]?["persistedQuery"]?["sha256Hash"]?.string?.lowercased()
        variables = request["variables"] ?? .null
        guard document != nil || hash != nil else { return nil }
    }

    /// The text that stands for the request in a cache key: a request with a document and one with its hash have the same.
    /// - Parameter digest: Returns the SHA-256 of bytes in hexadecimal.
    package func keyText(digest: ([UInt8]) -> String) -> [UInt8] {
        let document = document.map { digest(Array($0.utf8)) } ?? hash ?? ""
        let parts = ["graphql", document, operationName ?? "", String(decoding: variables.inOrder.serialized(), as: UTF8.self)]
        return Array(parts.joined(separator: "\n").utf8)
    }

    /// The value of the variable that a route names by a JSON Pointer, as text; nil if it is absent or no scalar.
    package func variable(_ pointer: JSONPointer) -> String? {
        switch pointer.get(in: variables) {
        case .string(let text)?: text
        case .number(let number)?: number.literal
        default: nil
        }
    }
}

extension JSONValue {
    /// The same value with the members of every object in the order of their names.
    fileprivate var inOrder: JSONValue {
        switch self {
        case .array(let elements): .array(elements.map(\.inOrder))
        case .object(let members): .object(JSONObject(members.sorted { $0.name < $1.name }.map { ($0.name, $0.value.inOrder) }))
        default: self
        }
    }
}

/// What a response of a GraphQL endpoint says about its request (GraphQL over HTTP §6.4; docs/outbox.md#graphql).
package enum GraphQLResponse {
    /// The message of the first of the response's errors; nil for a response without errors, and for a body that is not one.
    package static func error(in body: [UInt8]) -> String? {
        guard body.holds("\"errors\""), let document = try? JSONValue.parse(body) else { return nil }
        for response in document.array ?? [document] {
            guard let errors = response["errors"]?.array, let first = errors.first else { continue }
            return first["message"]?.string ?? "errors"
        }
        return nil
    }

    /// The reply to a queued mutation: its fields are null, because there is no data yet, and its extensions name the operation.
    /// - Parameters:
    ///   - request: The body of the mutation.
    ///   - isOptimistic: True to answer with the data that the mutation's arguments show.
    package static func queued(_ operation: JSONValue, to request: [UInt8], isOptimistic: Bool = false) -> JSONValue {
        let request = GraphQLRequest(body: request)
        if isOptimistic, let data = request.flatMap(GraphQLOptimism.data) {
            return ["data": data, "extensions": ["rockpool": operation]]
        }
        let names = request?.document.map { selection(in: $0, operationName: request?.operationName) } ?? []
        return ["data": .object(JSONObject(names.map { ($0, .null) })), "extensions": ["rockpool": operation]]
    }

    /// The response names of the fields that the operation selects, without those of its fragments.
    static func selection(in document: String, operationName: String?) -> [String] {
        var names: [String] = []
        var (words, depth, isSelected) = ([String](), 0, false)
        var last: GraphQLTokens.Token?
        for token in GraphQLTokens(document) {
            switch token {
            case .open:
                if depth == 0 {
                    isSelected = words.first != "fragment" && (operationName == nil || words.dropFirst().first == operationName)
                }
                depth += 1
            case .close:
                depth = max(0, depth - 1)
                if depth == 0 {
                    words = []
                    if isSelected { return names }
                }
            case .word(let word) where depth == 0: words.append(word)
            case .word(let word) where depth == 1 && isSelected: if !isAfterMark(last) { names.append(word) }
            case .word, .mark: break
            }
            // `... on Type` names a type after the mark and the word.
            if token != .word("on") || !isAfterMark(last) { last = token }
        }
        return names
    }

    /// True after the colon of an alias, which is the name itself, and before the name of a directive or a fragment.
    private static func isAfterMark(_ token: GraphQLTokens.Token?) -> Bool { if case .mark? = token { true } else { false } }
}

/// The kind of operation that a request's body selects (GraphQL specification §2.3).
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
        for token in GraphQLTokens(document) {
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
            case .mark: break
            }
        }
        return found
    }
}

/// Braces, names and the marks between them; parentheses with their content, strings and comments are skipped (GraphQL specification §2.1).
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

/// Splits a document into tokens; comments and commas are left out (GraphQL specification §2.1.7).
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

// MARK: - Optimistic data

/// Answers a mutation from its own arguments (docs/outbox.md#graphql, `offline_response: optimistic`).
struct GraphQLOptimism {
    private typealias Token = GraphQLLexer.Token

    private let tokens: [Token]
    private let variables: JSONValue
    private var place = 0
    /// The places of the fragments' selections.
    private var fragments: [String: Int] = [:]
    private var operations: [(name: String?, place: Int)] = []
    private var depth = 0

    /// Returns the data; nil if the document has no such operation.
    static func data(of request: GraphQLRequest) -> JSONValue? {
        guard let document = request.document else { return nil }
        var reader = GraphQLOptimism(document, request.variables)
        guard let operation = reader.operations.first(where: { request.operationName == nil || $0.name == request.operationName }) else {
            return nil
        }
        reader.place = operation.place
        return .object(JSONObject(reader.selection(of: nil).map { ($0.name, $0.value) }))
    }

    private init(_ document: String, _ variables: JSONValue) {
        (tokens, self.variables) = (GraphQLLexer.tokens(of: document), variables)
        var (words, level) = ([String](), 0)
        for (index, token) in tokens.enumerated() {
            switch token {
            case .mark("{") where level == 0:
                if words.first == "fragment", words.count > 1 {
                    fragments[words[1]] = index
                } else {
                    operations.append((words.dropFirst().first, index))
                }
                (words, level) = ([], 1)
            case .mark("{"), .mark("("): level += 1
            case .mark("}"), .mark(")"): level -= 1
            case .name(let name) where level == 0: words.append(name)
            default: break
            }
        }
    }

    private var next: Token? { place < tokens.count ? tokens[place] : nil }

    private mutating func take(_ mark: Character) -> Bool {
        guard next == .mark(mark) else { return false }
        place += 1
        return true
    }

    private mutating func name() -> String? {
        guard case .name(let name)? = next else { return nil }
        place += 1
        return name
    }

    /// Reads a selection. Its members have the values of `source`, those of the operation itself the values of their own arguments.
    private mutating func selection(of source: JSONValue?) -> [(name: String, value: JSONValue)] {
        var members: [(name: String, value: JSONValue)] = []
        guard take("{"), depth < 32 else { return members }
        depth += 1
        defer { depth -= 1 }
        while let token = next, !take("}") {
            switch token {
            case .mark("."):
                place += 1
                members += fragment(of: source)
            case .name: members.append(field(of: source))
            default: place += 1
            }
        }
        return members
    }

    private mutating func fragment(of source: JSONValue?) -> [(name: String, value: JSONValue)] {
        let name = name()
        if name == "on" { _ = self.name() }
        skipDirectives()
        guard let name, name != "on" else { return selection(of: source) }
        guard let start = fragments[name] else { return [] }
        let after = place
        defer { place = after }
        place = start
        return selection(of: source)
    }

    private mutating func field(of source: JSONValue?) -> (name: String, value: JSONValue) {
        let alias = name() ?? ""
        let field = take(":") ? name() ?? "" : alias
        let arguments = arguments()
        skipDirectives()
        guard next == .mark("{") else { return (alias, source.flatMap { Self.member(field, of: $0) } ?? .null) }
        guard let inner = source == nil ? arguments : source.flatMap({ Self.member(field, of: $0) }), inner.object != nil else {
            _ = selection(of: .null)
            return (alias, .null)
        }
        return (alias, .object(JSONObject(selection(of: inner).map { ($0.name, $0.value) })))
    }

    /// The argument of this name, also within an argument such as `input`.
    private static func member(_ name: String, of arguments: JSONValue) -> JSONValue? {
        if let value = arguments[name] { return value }
        return arguments.object?.lazy.compactMap { $0.value.object == nil ? nil : $0.value[name] }.first
    }

    private mutating func arguments() -> JSONValue {
        guard take("(") else { return .object(JSONObject()) }
        var members: [(String, JSONValue)] = []
        while next != nil, !take(")") {
            guard let name = name(), take(":") else {
                place += 1
                continue
            }
            members.append((name, value()))
        }
        return .object(JSONObject(members))
    }

    private mutating func value() -> JSONValue {
        guard let token = next else { return .null }
        place += 1
        switch token {
        case .string(let text): return .string(text)
        case .number(let text): return (try? JSONValue.parse(Array(text.utf8))) ?? .null
        case .name("true"): return true
        case .name("false"): return false
        case .name("null"): return .null
        case .name(let name): return .string(name)
        case .mark("$"): return name().flatMap { variables[$0] } ?? .null
        case .mark("["):
            var elements: [JSONValue] = []
            while next != nil, !take("]") { elements.append(value()) }
            return .array(elements)
        case .mark("{"):
            var members: [(String, JSONValue)] = []
            while next != nil, !take("}") {
                guard let name = name(), take(":") else {
                    place += 1
                    continue
                }
                members.append((name, value()))
            }
            return .object(JSONObject(members))
        case .mark: return .null
        }
    }

    private mutating func skipDirectives() {
        while take("@") {
            _ = name()
            _ = arguments()
        }
    }
}
