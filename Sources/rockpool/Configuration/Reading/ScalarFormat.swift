// The written form of one kind of value: parsing, checks and output (docs/reference/configuration.md#values).

/// The reason why a text is invalid; printed after the key's name: `"5 XB" is not a size such as 500 MB`.
struct Invalid: Error, Hashable {
    var reason: String
}

/// One kind of scalar value. Files, `ROCKPOOL_` variables and flags are all parsed by it.
struct ScalarFormat<Value>: Sendable {
    let parse: @Sendable (String) throws(Invalid) -> Value
    let show: @Sendable (Value) -> ConfigDocument
    /// The JSON Schema of the value.
    let schema: ConfigDocument
    /// True if the value names a file or a directory of this machine.
    var namesFile = false

    init(
        schema: ConfigDocument, parse: @escaping @Sendable (String) throws(Invalid) -> Value,
        show: @escaping @Sendable (Value) -> ConfigDocument
    ) {
        self.schema = schema
        self.parse = parse
        self.show = show
    }

    /// A kind with one error message for all mistakes: the text `is not` the expected form.
    /// - Parameter meant: The value that a mistyped text may have meant; nil if none resembles it.
    init(
        _ expected: String, schema: ConfigDocument? = nil, show: @escaping @Sendable (Value) -> ConfigDocument,
        meant: @escaping @Sendable (String) -> String? = { _ in nil }, parse: @escaping @Sendable (String) -> Value?
    ) {
        self.init(
            schema: schema ?? .schema("string", description: expected),
            parse: { text throws(Invalid) in
                if let value = parse(text) { return value }
                let near = meant(text).map { "; did you mean: \($0.withoutUserinfo)" } ?? ""
                throw Invalid(reason: "\"\(text.withoutUserinfo)\" is not \(expected)\(near)")
            },
            show: show)
    }

    /// This form with another condition, which is printed after `must be`.
    func requiring(_ condition: String, _ test: @escaping @Sendable (Value) -> Bool) -> ScalarFormat {
        ScalarFormat(
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
    /// The text without a URL's userinfo: it may contain a password, and messages are logged.
    fileprivate var withoutUserinfo: String {
        guard let start = firstRange(of: "//")?.upperBound, let at = self[start...].lastIndex(of: "@") else { return self }
        return self[..<start] + "…" + self[at...]
    }
}
