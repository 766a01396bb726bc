// The name of a key: its path in problems, its variable in the environment (docs/reference/configuration.md#variables).

/// The name of a key from the root: `proxy.timeouts.head`, `upstreams[0].name`.
struct KeyPathName: Hashable, Sendable {
    var text: String
    /// Keys of list items have no variable, because it could not identify the item.
    var isOverridable = true

    static let root = KeyPathName(text: "")

    func key(_ name: String) -> KeyPathName {
        KeyPathName(text: text.isEmpty ? name : "\(text).\(name)", isOverridable: isOverridable)
    }

    func item(_ index: Int) -> KeyPathName { KeyPathName(text: "\(text)[\(index)]", isOverridable: false) }

    /// The environment variable: `ROCKPOOL_PROXY_TIMEOUTS_HEAD`.
    var variable: String {
        "ROCKPOOL_" + String(text.uppercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
    }
}
