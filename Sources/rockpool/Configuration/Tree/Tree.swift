// A configuration as an ordered document, for `config show` and the JSON Schema.

/// An ordered document, printed as YAML or JSON.
indirect enum Tree: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int)
    case text(String)
    case list([Tree])
    case map([Member])

    struct Member: Hashable, Sendable {
        var name: String
        var value: Tree

        init(_ name: String, _ value: Tree) {
            self.name = name
            self.value = value
        }
    }

    /// The member of that name, if this is a map with it.
    subscript(name: String) -> Tree? {
        guard case .map(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }
}
