// The written form of one kind of value: parsing, checks and output (docs/reference/configuration.md#values).
import RockpoolCore

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

/// Scalar values: words, paths, flags, numbers, shares, sizes and durations (docs/reference/configuration.md#values).
extension ScalarFormat where Value == String {
    /// A text that passes a test.
    static func text(_ expected: String, where test: @escaping @Sendable (String) -> Bool) -> ScalarFormat {
        ScalarFormat(expected, show: { .text($0) }, parse: { test($0) ? $0 : nil })
    }

    /// One of some words, or a prefix followed by more text.
    static func words(_ words: [String], orPrefixed prefix: String? = nil) -> ScalarFormat {
        let known = words + (prefix.map { [$0 + "ID"] } ?? [])
        return ScalarFormat(
            schema: prefix == nil ? .schema(words: words) : .schema("string", description: "one of \(known.joined(separator: ", "))"),
            parse: { text throws(Invalid) in
                if words.contains(text) { return text }
                if let prefix, text.hasPrefix(prefix), text.count > prefix.count { return text }
                throw Invalid.notOne(text, of: known)
            },
            show: { .text($0) })
    }

    /// A program or one of its arguments.
    static let argument = text("a program or an argument") { !$0.isEmpty && !$0.contains("\0") }

    /// A file system path; `~` is the home directory.
    static let path = {
        var path = text("a path") { !$0.isEmpty && !$0.contains("\0") }
        path.namesFile = true
        return path
    }()

    /// The address of a PostgreSQL database. A password is refused, because `config show` prints the configuration.
    static let databaseURL = text("postgresql://HOST/DATABASE, without a password") { text in
        guard text.hasPrefix("postgresql://") || text.hasPrefix("postgres://"), !text.contains("\0") else { return false }
        let place = text.drop { $0 != "/" }.dropFirst(2)
        let user = place.prefix { $0 != "/" }.split(separator: "@", omittingEmptySubsequences: false)
        return !(user.count > 1 && user[0].contains(":")) && !text.contains("password=")
    }
}

extension ScalarFormat where Value == Bool {
    static let flag = ScalarFormat("true or false", schema: .schema("boolean"), show: { .bool($0) }) { text in
        switch text.lowercased() {
        case "true", "yes", "on": true
        case "false", "no", "off": false
        default: nil
        }
    }
}

extension ScalarFormat where Value == Int {
    static func whole(in range: ClosedRange<Int>) -> ScalarFormat {
        let schema = ConfigDocument.schema("integer").adding("minimum", value: .int(range.lowerBound)).adding(
            "maximum", value: .int(range.upperBound))
        return ScalarFormat("a whole number from \(range.lowerBound) to \(range.upperBound)", schema: schema, show: { .int($0) }) { text in
            Int(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    static let percent = quantity("a share such as 25%", show: { .text("\($0)%") }) { text throws(UnitError) in try Percent.parse(text) }

    /// A share above 0%.
    static let share = percent.requiring("at least 1%") { $0 > 0 }
}

extension ScalarFormat where Value == ByteCount {
    static let size = quantity("a size such as 500 MB or 512 KiB", show: { .text($0.description) }) { text throws(UnitError) in
        try ByteCount(parsing: text)
    }

    /// A size above 0.
    static let limit = size.requiring("at least 1 B") { $0 > .zero }
}

extension ScalarFormat where Value == StorageBound {
    /// A size, or a share of `storage.limit`.
    static let bound = ScalarFormat(
        schema: .schema("string", description: "a size such as 500 MB, or a share of storage.limit such as 70%"),
        parse: { text throws(Invalid) in
            text.hasSuffix("%")
                ? .share(try ScalarFormat<Int>.share.parse(text)) : .size(try ScalarFormat<ByteCount>.size.parse(text))
        },
        show: { bound in
            switch bound {
            case .size(let size): ScalarFormat<ByteCount>.size.show(size)
            case .share(let percent): ScalarFormat<Int>.share.show(percent)
            }
        })
}

extension ScalarFormat where Value == TimeSpan {
    static let duration = quantity("a duration such as 90s, 15m, 7d or forever", show: { .text($0.description) }) {
        text throws(UnitError) in
        try TimeSpan(parsing: text)
    }

    /// A duration above 0, for time limits and intervals.
    static let span = duration.requiring("longer than 0s") { $0 > .zero }
}

extension ScalarFormat where Value == DayHours {
    static let dayHours = ScalarFormat("hours of the day such as 01:00-06:00", show: { .text($0.description) }) { DayHours($0) }
}

extension ScalarFormat {
    /// A number with a unit; the unit's parse error is passed on.
    private static func quantity(
        _ expected: String, show: @escaping @Sendable (Value) -> ConfigDocument,
        parse: @escaping @Sendable (String) throws(UnitError) -> Value
    ) -> ScalarFormat {
        ScalarFormat(
            schema: .schema("string", description: expected),
            parse: { text throws(Invalid) in
                do {
                    return try parse(text)
                } catch {
                    throw Invalid(reason: "\"\(text)\" is not \(expected): \(error)")
                }
            },
            show: show)
    }
}

extension ScalarFormat where Value: RawRepresentable<String> & CaseIterable & Sendable {
    /// A case of an enumeration.
    static var word: ScalarFormat {
        let values = Array(Value.allCases)
        return ScalarFormat(
            schema: .schema(words: values.map(\.rawValue)),
            parse: { text throws(Invalid) in
                if let value = values.first(where: { $0.rawValue == text || ScalarFormat.truths[text]?.contains($0.rawValue) == true }) {
                    return value
                }
                throw Invalid.notOne(text, of: values.map(\.rawValue))
            },
            show: { .text($0.rawValue) })
    }

    /// YAML 1.1 reads `off` and `yes` as Booleans, so a program that rewrites a configuration stores them as `false` and `true`.
    private static var truths: [String: Set<String>] { ["false": ["off", "no"], "true": ["on", "yes"]] }
}
