// The configuration a test gives its server: JSON, which is YAML too.
package import RockpoolCore

/// What differs from the defaults.
package struct ServerSettings: Sendable {
    /// Of the one upstream with a gateway; nil declares none.
    package var upstream: JSONValue?
    /// Declared beside it.
    package var others: [JSONValue] = []
    package var proxy: JSONValue = [:]
    package var storage: JSONValue = [:]
    package var cleanup: JSONValue = [:]
    package var admin: JSONValue = [:]
    package var log: JSONValue = [:]
    /// For undeclared hosts.
    package var defaults: JSONValue = [:]

    /// Declares no upstream.
    package init() {}

    /// Declares one upstream at a loopback port; `members` are further ones of it.
    package init(upstream port: Int, _ members: JSONValue = [:], storage: JSONValue = [:], proxy: JSONValue = [:]) {
        upstream = Self.declaration("notes", port: port).merging(members)
        self.storage = storage
        self.proxy = proxy
    }

    /// An upstream's entry.
    package static func declaration(_ name: String, port: Int) -> JSONValue {
        ["name": .string(name), "origin": .string("http://127.0.0.1:\(port)")]
    }

    /// - Parameter listen: `host:port` of the proxy and of the admin API, where the settings name none.
    func document(cache: String, state: String, gateway: String, listen: (proxy: String, admin: String)) -> JSONValue {
        let own = upstream.map { [Self.object(["gateway": .string(gateway)], $0)] } ?? []
        return [
            "proxy": Self.object(["listen": .string(listen.proxy)], proxy),
            "admin": Self.object(["listen": .string(listen.admin)], admin), "log": log,
            "defaults": defaults,
            "storage": Self.object(["cache_dir": .string(cache), "state_dir": .string(state), "min_free": "1 MB"], storage),
            "cleanup": cleanup,
            "upstreams": .array(own + others),
        ]
    }

    private static func object(_ defaults: JSONValue, _ changes: JSONValue) -> JSONValue { defaults.merging(changes) }
}
