// The data of a mutation that waits, as far as its arguments show it (docs/outbox.md#graphql, `offline_response: optimistic`).

/// Answers a mutation from its own arguments.
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
