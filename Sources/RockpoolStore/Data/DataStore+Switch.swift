// The network switch as it was set by hand: it survives every restart (contract §7 `network`).
package import RockpoolCore

extension DataStore {
    private static func switchPath(_ directory: String) -> String { "\(directory)/network.json" }

    /// What was set by hand; nil when nothing was, or the file is damaged.
    package func networkSwitch() -> NetworkSwitch? { Self.networkSwitch(in: directory) }

    /// The same of a server that does not run.
    /// - Parameter directory: the state directory.
    package static func networkSwitch(in directory: String) -> NetworkSwitch? {
        guard let bytes = try? FileBytes.read(switchPath(directory)) else { return nil }
        return (try? JSONValue.parse(bytes)).flatMap { NetworkSwitch($0) }
    }

    /// Keeps it, durably. Written beside and renamed, so that a crash leaves the one or the other.
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
