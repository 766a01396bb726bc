// Combinations of keys that cannot work, each reported at a key that can be changed (docs/reference/configuration.md#checks).
import RockpoolCore

extension Configuration {
    /// Every impossible combination.
    func contradictions() -> [Contradiction] {
        storageContradictions() + outboxContradictions() + categoryContradictions() + listenerContradictions()
            + sharedGatewayContradictions() + noticeContradictions() + upstreamContradictions() + fleet.contradictions()
            + via.indices.flatMap { via[$0].parent.contradictions(at: "via[\($0)]") }
            + upstreams.indices.flatMap { upstreams[$0].contradictions(at: "upstreams[\($0)]", categories: categories.map(\.name)) }
    }

    private func storageContradictions() -> [Contradiction] {
        var found: [Contradiction] = []
        for (key, bound) in [("storage.cache_limit", storage.cacheBound), ("storage.data_limit", storage.dataBound)] {
            if case .share(let percent) = bound, storage.limit == nil {
                found.append(Contradiction(key, with: "storage.limit", "\(percent)% is a share of storage.limit, which is missing"))
            }
        }
        guard found.isEmpty else { return found }
        let sum = storage.cacheLimit + storage.dataLimit
        if let limit = storage.limit, sum > limit {
            found.append(
                Contradiction(
                    "storage.limit", with: "storage.cache_limit", "cache_limit and data_limit are \(sum) together, more than \(limit)"))
        }
        if storage.dataLimit < .mb(8) {
            found.append(Contradiction("storage.data_limit", "\(storage.dataLimit) is too little, at least 8 MB are needed"))
        }
        if storage.cacheLimit < .mb(1) {
            found.append(Contradiction("storage.cache_limit", "\(storage.cacheLimit) is too little, at least 1 MB is needed"))
        }
        let cache = storage.cacheDir.withoutTrailingSlash, state = storage.stateDir.withoutTrailingSlash
        if cache == state {
            found.append(
                Contradiction(
                    "storage.state_dir", with: "storage.cache_dir", "must not be storage.cache_dir, which may be deleted at any time"))
        } else if state.hasPrefix(cache + "/") {
            found.append(
                Contradiction(
                    "storage.state_dir", with: "storage.cache_dir", "must not lie in storage.cache_dir, which may be deleted at any time"))
        }
        return found
    }

    private func outboxContradictions() -> [Contradiction] {
        guard outbox.store == .postgresql, outbox.url == nil, outbox.urlFile == nil else { return [] }
        return [Contradiction("outbox.store", "postgresql needs outbox.url or outbox.url_file")]
    }

    private func categoryContradictions() -> [Contradiction] {
        var found: [Contradiction] = []
        let guaranteed = categories.reduce(0) { $0 + $1.guaranteePercent }
        if guaranteed > 100 {
            let parts = categories.filter { $0.guaranteePercent > 0 }.map { "\($0.name) \($0.guaranteePercent)%" }
            found.append(
                Contradiction("categories", "the guarantees add up to \(guaranteed)%, more than 100% (\(parts.joined(separator: ", ")))"))
        }
        for category in categories {
            let key = "categories.\(category.name)"
            if category.name == "auto" || !category.name.isName {
                found.append(Contradiction(key, "a category cannot be named \"\(category.name)\""))
            }
            if category.guaranteePercent > category.sharePercent {
                found.append(
                    Contradiction("\(key).guarantee", "\(category.guaranteePercent)% is more than its share of \(category.sharePercent)%"))
            }
        }
        if defaults.category != "auto", !categories.contains(where: { $0.name == defaults.category }) {
            found.append(.unknownCategory(named: defaults.category, at: "defaults.category", known: ["auto"] + categories.map(\.name)))
        }
        return found
    }

    /// Every listener with its key.
    private var listeners: [(key: String, address: HostAndPort)] {
        let named: [(String, String?)] =
            [
                ("proxy.listen", proxy.listen), ("proxy.socks", proxy.socks), ("proxy.transparent", proxy.transparent),
                ("admin.listen", admin.listen),
            ]
            + gateways.compactMap { door in
                upstreams.firstIndex { $0.gateway == door.listen }.map { ("upstreams[\($0)].gateway", door.listen) }
            }
        return named.compactMap { key, text in text.flatMap { HostAndPort($0) }.map { (key, $0) } }
    }

    private func listenerContradictions() -> [Contradiction] {
        var found: [Contradiction] = []
        let listeners = listeners
        for (index, listener) in listeners.enumerated() {
            if let other = listeners[..<index].first(where: { $0.address.collides(with: listener.address) }) {
                found.append(Contradiction(listener.key, with: other.key, "port \(listener.address.port) is taken by \(other.key)"))
            }
            if !listener.address.isLoopback, proxy.allow.isEmpty {
                let message = "\(listener.address.host) can be reached from the network; name the networks that may connect in proxy.allow"
                found.append(Contradiction(listener.key, message))
            }
            if !listener.address.isLoopback, listener.key == "proxy.socks", proxy.auth != nil {
                let message =
                    "SOCKS sends the passwords of proxy.auth in the clear; listen on loopback, or use proxy.listen, which takes TLS"
                found.append(Contradiction(listener.key, message))
            }
        }
        return found
    }

    private var gateways: [GatewayListener] { GatewayListener.all(of: upstreams) }

    /// Upstreams of one listener that cannot be told apart, or that want it with and without TLS.
    private func sharedGatewayContradictions() -> [Contradiction] {
        var found: [Contradiction] = []
        for door in gateways where door.upstreams.count > 1 {
            for (index, upstream) in door.upstreams.enumerated().dropFirst() {
                guard let own = upstream.gatewaySettings, let place = upstreams.firstIndex(where: { $0.name == upstream.name }) else {
                    continue
                }
                let key = "upstreams[\(place)].gateway"
                let others = door.upstreams[..<index]
                if let other = others.first(where: { $0.gatewaySettings?.host == own.host && $0.gatewaySettings?.path == own.path }) {
                    let what = own.host == nil && own.path == nil ? "host or path must tell them apart" : "with the same host and path"
                    found.append(Contradiction(key, "\(own.listen) is the gateway of \"\(other.name)\" already; \(what)"))
                }
                if let first = door.upstreams.first, first.gatewaySettings?.tls != own.tls {
                    found.append(Contradiction(key, "\(own.listen) has another value of tls as the gateway of \"\(first.name)\""))
                }
            }
        }
        return found
    }

    private func upstreamContradictions() -> [Contradiction] {
        var found: [Contradiction] = []
        for (index, upstream) in upstreams.enumerated() where !upstream.name.isEmpty {
            let key = "upstreams[\(index)]"
            if upstreams[..<index].contains(where: { $0.name == upstream.name }) {
                found.append(Contradiction("\(key).name", "another upstream is named \"\(upstream.name)\" too"))
            }
            if let other = upstreams[..<index].first(where: { $0.place == upstream.place }), !upstream.origin.host.isEmpty {
                found.append(Contradiction("\(key).origin", "\(upstream.place) is the origin of \"\(other.name)\" already"))
            }
            let own = listeners.first { $0.address.port == upstream.origin.port && $0.address.host == upstream.origin.host }
            if let own {
                found.append(Contradiction("\(key).origin", "\(upstream.origin.url) is Rockpool's own listener, \(own.key)"))
            }
        }
        return found
    }
}

extension Configuration {
    /// Rules of notices without a way or with several, and callbacks that cannot be signed.
    private func noticeContradictions() -> [Contradiction] {
        var found: [Contradiction] = []
        for (index, rule) in notify.enumerated() {
            let key = "notify[\(index)]"
            if rule.wayCount != 1 { found.append(Contradiction(key, "needs exactly one of command, webhook and desktop: true")) }
            if rule.on.isEmpty { found.append(Contradiction("\(key).on", "is empty; leave it out for every event that needs a person")) }
            if let program = rule.command.first, !program.hasPrefix("/") {
                found.append(Contradiction("\(key).command", "\"\(program)\" is not a full path, such as /usr/local/bin/alarm"))
            }
        }
        if !callbacks.origins.isEmpty, callbacks.secretFile == nil {
            found.append(Contradiction("callbacks.secret_file", with: "callbacks.origins", "is missing; callbacks are always signed"))
        }
        return found
    }
}

extension FleetSettings {
    /// A list of gateways that is none, or lacks this one.
    fileprivate func contradictions() -> [Contradiction] {
        guard !parents.isEmpty || own != nil else { return [] }
        if Set(parents).count < parents.count { return [Contradiction("fleet.parents", "names a gateway twice")] }
        guard let own else {
            return [Contradiction("fleet.self", with: "fleet.parents", "is missing: which of the parents is this gateway?")]
        }
        guard parents.contains(own) else { return [Contradiction("fleet.self", with: "fleet.parents", "\(own) is none of the parents")] }
        return []
    }
}

extension Contradiction {
    static func unknownCategory(named name: String, at key: String, known: [String]) -> Contradiction {
        let nearest = Nearest.to(name, of: known).map { " (nearest valid value: \($0))" } ?? ""
        return Contradiction(key, "there is no category \"\(name)\"\(nearest)")
    }
}

extension String {
    fileprivate var withoutTrailingSlash: String { count > 1 && hasSuffix("/") ? String(dropLast()) : self }
}
