// The network switch as set by hand, which survives every restart (docs/reference/behaviour.md#network-switch `network`).
import Logging
package import RockpoolCore

extension DataStore {
    private static let switchName = "network.json"

    /// Returns the switch set by hand; nil when none was set.
    package func networkSwitch() -> NetworkSwitch? {
        let known = Self.storedSwitch(in: directory)
        if known?.isDamaged == true {
            logger.error(
                "the network switch cannot be read: nothing is sent until it is set; run: rockpool network auto",
                metadata: ["path": "\(directory)/\(Self.switchName)"])
        }
        return known?.value
    }

    /// Returns the switch of a stopped server.
    /// - Parameter directory: the state directory.
    package static func networkSwitch(in directory: String) -> NetworkSwitch? { storedSwitch(in: directory)?.value }

    /// A switch that cannot be read may have been `offline`, which promises that nothing is sent.
    private static func storedSwitch(in directory: String) -> (value: NetworkSwitch, isDamaged: Bool)? {
        let path = "\(directory)/\(switchName)"
        guard FileStatus.of(path) != nil else { return nil }
        let value = (try? FileBytes.read(path)).flatMap { try? JSONValue.parse($0) }.flatMap { NetworkSwitch($0) }
        return value.map { ($0, false) } ?? (NetworkSwitch(mode: .offline), true)
    }

    /// Stores the switch durably. A crash leaves either the old or the new file.
    /// - Throws: `FileError`.
    package func keep(_ networkSwitch: NetworkSwitch) throws {
        try Paths.replace(Self.switchName, in: directory, by: networkSwitch.document.serialized())
    }
}
