// The network switch as set by hand, which survives every restart (docs/reference/behaviour.md#network-switch `network`).
package import RockpoolCore

extension DataStore {
    private static func switchPath(_ directory: String) -> String { "\(directory)/network.json" }

    /// Returns the switch set by hand; nil when none was set, or the file is damaged.
    package func networkSwitch() -> NetworkSwitch? { Self.networkSwitch(in: directory) }

    /// Returns the switch of a stopped server.
    /// - Parameter directory: the state directory.
    package static func networkSwitch(in directory: String) -> NetworkSwitch? {
        guard let bytes = try? FileBytes.read(switchPath(directory)) else { return nil }
        return (try? JSONValue.parse(bytes)).flatMap { NetworkSwitch($0) }
    }

    /// Stores the switch durably. Written to a temporary file and renamed, so that a crash leaves either the old or the new file.
    /// - Throws: `FileError`.
    package func keep(_ networkSwitch: NetworkSwitch) throws {
        let path = Self.switchPath(directory)
        let temporary = "\(path).new"
        Paths.remove(temporary)
        let file = try Descriptor.create(temporary)
        try file.write(all: Array(networkSwitch.document.serialized()))
        try file.synchronize()
        try Paths.move(temporary, to: path)
        try Paths.synchronizeDirectory(directory)
    }
}
