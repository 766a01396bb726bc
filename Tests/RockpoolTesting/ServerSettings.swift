// The configuration that a test gives its server, as JSON, which is also valid YAML.
package import RockpoolCore

/// The settings that differ from the defaults.
package struct ServerSettings: Sendable {
    /// Declaration of the one upstream with a gateway; nil declares none.
    package var upstream: JSONValue?
    /// Declarations of further upstreams.
    package var others: [JSONValue] = []
    package var proxy: JSONValue = [:]
    package var storage: JSONValue = [:]
    package var cleanup: JSONValue = [:]
    package var admin: JSONValue = [:]
    package var log: JSONValue = [:]
    /// Settings for undeclared hosts.
    package var defaults: JSONValue = [:]
    /// Rules of notices.
    package var notify: JSONValue = []
    package var callbacks: JSONValue = [:]
    package var fleet: JSONValue = [:]
    package var tracing: JSONValue = .null
    /// Rules for parent proxies.
    package var via: JSONValue = []

    /// Declares no upstream.
    package init() {}

    /// Declares one upstream at a loopback port; `members` are merged into its declaration.
    package init(upstream port: Int, _ members: JSONValue = [:], storage: JSONValue = [:], proxy: JSONValue = [:]) {
        upstream = Self.declaration("notes", port: port).merging(members)
        self.storage = storage
        self.proxy = proxy
    }

    /// Returns the declaration of an upstream.
    package static func declaration(_ name: String, port: Int) -> JSONValue {
        ["name": .string(name), "origin": .string("http://127.0.0.1:\(port)")]
    }

    /// - Parameter listen: `host:port` of the proxy and of the admin API, used where the settings name none.
    func document(cache: String, state: String, gateway: String, listen: (proxy: String, admin: String)) -> JSONValue {
        let own = upstream.map { [Self.object(["gateway": .string(gateway)], $0)] } ?? []
        return [
            "proxy": Self.object(["listen": .string(listen.proxy)], proxy),
            "admin": Self.object(["listen": .string(listen.admin)], admin), "log": log,
            "defaults": defaults, "via": via, "notify": notify, "callbacks": callbacks, "fleet": fleet,
            "tracing": tracing,
            "storage": Self.object(["cache_dir": .string(cache), "state_dir": .string(state), "min_free": "1 MB"], storage),
            "cleanup": cleanup,
            "upstreams": .array(own + others),
        ]
    }

    private static func object(_ defaults: JSONValue, _ changes: JSONValue) -> JSONValue { defaults.merging(changes) }
}
