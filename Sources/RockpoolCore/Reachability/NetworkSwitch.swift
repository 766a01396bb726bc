// The switch that a person sets: for everything, and for single upstreams (contract §4 `/v1/network`, §7 `network`).

/// What is switched by hand.
package struct NetworkSwitch: Hashable, Sendable {
    /// Of all upstreams and of undeclared hosts.
    package var mode: Reachability.Mode
    /// Of upstreams that were switched by themselves since.
    package var upstreams: [String: Reachability.Mode]

    package init(mode: Reachability.Mode = .auto, upstreams: [String: Reachability.Mode] = [:]) {
        self.mode = mode
        self.upstreams = upstreams
    }

    /// - Parameter upstream: nil for all, and then none is switched by itself any more.
    package mutating func turn(_ mode: Reachability.Mode, upstream: String?) {
        guard let upstream else { return self = NetworkSwitch(mode: mode) }
        upstreams[upstream] = mode
    }

    /// Of an upstream; nil is an undeclared host.
    package func mode(of upstream: String?) -> Reachability.Mode { upstream.flatMap { upstreams[$0] } ?? mode }

    /// As it is kept on the disk.
    package var document: JSONValue {
        var members = JSONObject()
        for (name, mode) in upstreams.sorted(by: { $0.key < $1.key }) { members[name] = .string(mode.rawValue) }
        return ["mode": .string(mode.rawValue), "upstreams": .object(members)]
    }

    /// Nil when it is not what `document` makes.
    package init?(_ document: JSONValue) {
        guard let mode = document["mode"]?.string.flatMap(Reachability.Mode.init), case .object(let members)? = document["upstreams"] else {
            return nil
        }
        self.init(mode: mode)
        for member in members {
            guard let mode = member.value.string.flatMap(Reachability.Mode.init) else { return nil }
            upstreams[member.name] = mode
        }
    }
}
