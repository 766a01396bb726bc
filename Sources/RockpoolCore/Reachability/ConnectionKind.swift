// The kind of connection by which this machine reaches others (docs/reference/admin-api.md#status).

/// A kind of connection, by the interface of the default route.
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
