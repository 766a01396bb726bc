// The key `cors`: one word, or a list of origins (docs/reference/configuration.md#upstreams).
import RockpoolCore

extension Key {
    /// `remembered`, `off`, or a list of origins of pages.
    static func crossOrigin(_ name: String, field: Field<Model, CrossOriginRule>) -> Key {
        let form = ScalarFormat<String>.pageOrigins
        return Key(
            name: name, schema: form.schema.orList,
            read: { entry, model, path, reader in
                guard let values = reader.values(entry, as: form, at: path) else { return }
                let words = values.filter(CrossOriginRule.words.contains)
                if let word = words.first, values.count > 1, let entry {
                    reader.refuse("\(path.text): \"\(word)\" stands alone, without origins", at: entry.place)
                } else {
                    model[keyPath: field] = CrossOriginRule(values)
                }
            },
            show: { $0[keyPath: field].shown })
    }
}

extension CrossOriginRule {
    fileprivate static let words = ["remembered", "off"]

    fileprivate init(_ values: [String]) {
        switch values {
        case ["remembered"]: self = .remembered
        case ["off"]: self = .off
        default: self = .origins(values)
        }
    }

    fileprivate var shown: ConfigDocument {
        switch self {
        case .remembered: .text("remembered")
        case .off: .text("off")
        case .origins(let origins): .list(origins.map { .text($0) })
        }
    }
}

extension ScalarFormat where Value == String {
    /// One of the words, or the origin of a page as in the field `Origin`: lower case, without a path.
    fileprivate static let pageOrigins = text("remembered, off, or an origin such as https://app.example.com") { text in
        if CrossOriginRule.words.contains(text) { return true }
        guard let separator = text.firstRange(of: "://"), !text[..<separator.lowerBound].isEmpty else { return false }
        let authority = text[separator.upperBound...]
        return !authority.isEmpty && text == text.lowercased()
            && authority.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#@".utf8.contains($0) }
    }
}
