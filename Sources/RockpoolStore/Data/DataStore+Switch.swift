// The network switch as set by hand, which survives every restart (docs/reference/behaviour.md#network-switch `network`).
package import RockpoolCore

extension DataStore {
    private static let switchName = "network.json"

    /// Returns the switch set by hand; nil when none was set, or the file is damaged.
    package func networkSwitch() -> NetworkSwitch? { Self.networkSwitch(in: directory) }

    /// Returns the switch of a stopped server.
    /// - Parameter directory: the state directory.
    package static func networkSwitch(in directory: String) -> NetworkSwitch? {
        guard let bytes = try? FileBytes.read("\(directory)/\(switchName)") else { return nil }
        return (try? JSONValue.parse(bytes)).flatMap { NetworkSwitch($0) }
    }

    /// Stores the switch durably. A crash leaves either the old or the new file.
    /// - Throws: `FileError`.
    package func keep(_ networkSwitch: NetworkSwitch) throws {
        try Paths.replace(Self.switchName, in: directory, by: networkSwitch.document.serialized())
    }
}
