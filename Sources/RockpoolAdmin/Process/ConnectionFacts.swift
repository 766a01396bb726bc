// The connection of this machine, as the system shows it (docs/reference/admin-api.md#status).
import Glibc
import RockpoolCore

/// Reads the default route.
enum ConnectionFacts {
    /// The most bytes that are read of a table of routes.
    private static let tableLimit = Int.kib(64)

    /// The interface of the default route and its kind; nil while there is none.
    static var current: (interface: String, kind: ConnectionKind)? {
        let interface =
            DefaultRoute.interface(inIPv4: text(of: "/proc/net/route")) ?? DefaultRoute.interface(inIPv6: text(of: "/proc/net/ipv6_route"))
        guard let interface, !interface.contains("/") else { return nil }
        let isWireless = ["wireless", "phy80211"].contains { unsafe access("/sys/class/net/\(interface)/\($0)", F_OK) == 0 }
        return (interface, ConnectionKind(interface: interface, isWireless: isWireless))
    }

    private static func text(of path: String) -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: tableLimit)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
