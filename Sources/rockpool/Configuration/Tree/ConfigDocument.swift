// A configuration as an ordered document, for `config show` and the JSON Schema.

/// An ordered document, printed as YAML or JSON.
indirect enum ConfigDocument: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int)
    case text(String)
    case list([ConfigDocument])
    case map([Member])

    struct Member: Hashable, Sendable {
        var name: String
        var value: ConfigDocument

        init(_ name: String, _ value: ConfigDocument) {
            self.name = name
            self.value = value
        }
    }

    /// The member of that name, if this is a map with it.
    subscript(name: String) -> ConfigDocument? {
        guard case .map(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }
}
