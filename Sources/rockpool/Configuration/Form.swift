// How one kind of value is written in the configuration: read from text, checked, and written back (contract §2).

/// Why a text is not a value of some kind; reads on after the key's name: `"5 XB" is not a size such as 500 MB`.
struct Invalid: Error, Hashable {
    var reason: String
}

/// One kind of scalar value. Files, `ROCKPOOL_` variables and flags are all read through it.
struct Form<Value>: Sendable {
    let parse: @Sendable (String) throws(Invalid) -> Value
    let show: @Sendable (Value) -> Tree
    /// What JSON Schema says of it.
    let schema: Tree

    init(
        schema: Tree, parse: @escaping @Sendable (String) throws(Invalid) -> Value, show: @escaping @Sendable (Value) -> Tree
    ) {
        self.schema = schema
        self.parse = parse
        self.show = show
    }

    /// A kind whose mistakes are all told alike: the text `is not` what was expected.
    init(
        _ expected: String, schema: Tree? = nil, show: @escaping @Sendable (Value) -> Tree,
        parse: @escaping @Sendable (String) -> Value?
    ) {
        self.init(
            schema: schema ?? .schema("string", expected),
            parse: { text throws(Invalid) in
                guard let value = parse(text) else { throw Invalid(reason: "\"\(text.withoutUserinfo)\" is not \(expected)") }
                return value
            },
            show: show)
    }

    /// The same with one more condition, which reads on after `must be`.
    func requiring(_ condition: String, _ test: @escaping @Sendable (Value) -> Bool) -> Form {
        Form(
            schema: schema,
            parse: { text throws(Invalid) in
                let value = try parse(text)
                guard test(value) else { throw Invalid(reason: "\"\(text)\" must be \(condition)") }
                return value
            },
            show: show)
    }
}

extension Invalid {
    static func notOne(_ text: String, of words: [String]) -> Invalid {
        let nearest = Nearest.to(text, of: words).map { " (nearest valid value: \($0))" } ?? ""
        return Invalid(reason: "\"\(text)\" is not one of \(words.joined(separator: ", "))\(nearest)")
    }
}

extension String {
    /// Without what a URL says before its `@`: it may be a password, and messages go into logs.
    fileprivate var withoutUserinfo: String {
        guard let start = firstRange(of: "//")?.upperBound, let at = self[start...].lastIndex(of: "@") else { return self }
        return self[..<start] + "…" + self[at...]
    }
}
