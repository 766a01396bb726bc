// The manual network mode, global and per upstream (docs/reference/behaviour.md#network-switch `/v1/network`, §7 `network`).

/// The manually set modes.
package struct NetworkSwitch: Hashable, Sendable {
    /// The mode of all upstreams and of undeclared hosts.
    package var mode: Reachability.Mode
    /// The modes of upstreams set individually since.
    package var upstreams: [String: Reachability.Mode]

    package init(mode: Reachability.Mode = .auto, upstreams: [String: Reachability.Mode] = [:]) {
        self.mode = mode
        self.upstreams = upstreams
    }

    /// - Parameter upstream: Nil sets the mode of all and removes the individual modes.
    package mutating func turn(_ mode: Reachability.Mode, upstream: String?) {
        guard let upstream else { return self = NetworkSwitch(mode: mode) }
        upstreams[upstream] = mode
    }

    /// The mode of an upstream; nil is an undeclared host.
    package func mode(of upstream: String?) -> Reachability.Mode { upstream.flatMap { upstreams[$0] } ?? mode }

    /// The form stored on disk.
    package var document: JSONValue {
        var members = JSONObject()
        for (name, mode) in upstreams.sorted(by: { $0.key < $1.key }) { members[name] = .string(mode.rawValue) }
        return ["mode": .string(mode.rawValue), "upstreams": .object(members)]
    }

    /// Nil if `document` could not have produced it.
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
