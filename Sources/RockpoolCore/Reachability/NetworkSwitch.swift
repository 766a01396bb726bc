// The network as the operator has set it and as it is measured: the manual mode, the kind of connection, the bandwidth.

/// The manually set modes (docs/reference/behaviour.md#network-switch `/v1/network`, §7 `network`).
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

/// A kind of connection, by the interface of the default route (docs/reference/admin-api.md#status).
package enum ConnectionKind: String, Hashable, Sendable {
    case wired, wireless, mobile

    /// The beginnings of the names that Linux and systemd give to modems.
    private static let modems = ["wwan", "wwp", "wws", "ppp", "rmnet"]

    /// - Parameter isWireless: true if the system says that it is a wireless one.
    package init(interface: String, isWireless: Bool) {
        self = Self.modems.contains { interface.hasPrefix($0) } ? .mobile : isWireless ? .wireless : .wired
    }
}

/// The tables of routes as Linux shows them (proc(5)).
package enum DefaultRoute {
    /// Returns the interface of the default route of `/proc/net/route` that is preferred; nil without one.
    package static func interface(inIPv4 table: String) -> String? {
        let routes = table.split(separator: "\n").dropFirst().compactMap { line -> (interface: Substring, metric: Int)? in
            let columns = line.split(whereSeparator: \.isWhitespace)
            guard columns.count > 7, columns[1] == "00000000", columns[7] == "00000000", isUp(columns[3]) else { return nil }
            return (columns[0], Int(columns[6]) ?? .max)
        }
        return routes.min { $0.metric < $1.metric }.map { String($0.interface) }
    }

    /// Returns the same of `/proc/net/ipv6_route`.
    package static func interface(inIPv6 table: String) -> String? {
        let routes = table.split(separator: "\n").compactMap { line -> (interface: Substring, metric: Int)? in
            let columns = line.split(whereSeparator: \.isWhitespace)
            guard columns.count > 9, columns[0].allSatisfy({ $0 == "0" }), columns[1] == "00", columns[9] != "lo", isUp(columns[8]) else {
                return nil
            }
            return (columns[9], Int(columns[5], radix: 16) ?? .max)
        }
        return routes.min { $0.metric < $1.metric }.map { String($0.interface) }
    }

    /// True if the flags of a route say that it is up.
    private static func isUp(_ flags: Substring) -> Bool { Int(flags, radix: 16).map { $0 & 1 == 1 } ?? false }
}

/// The bandwidth of one upstream's bodies, an average in which recent ones count more (docs/caching.md#bandwidth).
package struct Bandwidth: Hashable, Sendable {
    /// The transfers that the bandwidth permits.
    package enum Tier: String, CaseIterable, Sendable {
        /// All transfers, including prefetches.
        case high
        case medium
        /// Only transfers that a client waits for.
        case low
        case none
    }

    /// A shorter body measures latency rather than bandwidth.
    package static let leastBytes = ByteCount.kib(64)
    /// Bytes per second from which the tier is `medium`, and from which it is `high`.
    package static let (mediumFrom, highFrom): (Int64, Int64) = (50_000, 500_000)
    /// Measurements older than this are ignored: a laptop may have changed networks.
    package static let validity = TimeSpan.minutes(10)

    /// Bytes per second; nil before the first measurement.
    private var rate: Double?
    private var measuredAt = Timestamp.distantPast

    package init() {}

    /// Records a body of `bytes` received in `duration` from its first byte to its last, without being throttled by its reader.
    package mutating func record(_ bytes: Int64, in duration: Duration, now: Timestamp) {
        guard bytes >= Self.leastBytes.bytes else { return }
        // A body received at once was already in the kernel's buffers.
        let sample = Double(bytes) / max(duration / .seconds(1), 0.001)
        rate = isValid(at: now) ? rate.map { ($0 + sample) / 2 } ?? sample : sample
        measuredAt = now
    }

    /// Nil without a recent measurement.
    package func tier(at now: Timestamp) -> Tier? {
        guard let rate, isValid(at: now) else { return nil }
        return rate >= Double(Self.highFrom) ? .high : rate >= Double(Self.mediumFrom) ? .medium : .low
    }

    private func isValid(at now: Timestamp) -> Bool { (now - measuredAt).magnitude <= Self.validity }
}
