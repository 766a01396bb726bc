// New identifiers of operations and conflicts.
import RockpoolCore

extension UUIDv7 {
    /// Returns a new random identifier.
    static func make(at now: Timestamp) -> String { make(now: now, random: (.random(in: 0 ... .max), .random(in: 0 ... .max))) }
}
