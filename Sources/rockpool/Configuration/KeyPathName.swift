// What a key is called: in problems by its path, in the environment by its variable (contract §2).

/// The name of a key from the root down: `proxy.timeouts.head`, `upstreams[0].name`.
struct KeyPathName: Hashable, Sendable {
    var text: String
    /// Keys of list items have no variable: nothing would say which item is meant.
    var isOverridable = true

    static let root = KeyPathName(text: "")

    func key(_ name: String) -> KeyPathName {
        KeyPathName(text: text.isEmpty ? name : "\(text).\(name)", isOverridable: isOverridable)
    }

    func item(_ index: Int) -> KeyPathName { KeyPathName(text: "\(text)[\(index)]", isOverridable: false) }

    /// `ROCKPOOL_PROXY_TIMEOUTS_HEAD`.
    var variable: String {
        "ROCKPOOL_" + String(text.uppercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
    }
}
