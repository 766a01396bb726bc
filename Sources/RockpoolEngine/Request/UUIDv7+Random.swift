// New identifiers of operations and conflicts.
import RockpoolCore

extension UUIDv7 {
    /// Returns a new random identifier.
    static func make(at now: Timestamp) -> String {
        var source = SystemRandomNumberGenerator()
        return make(now: now, random: (source.next(), source.next()))
    }
}
