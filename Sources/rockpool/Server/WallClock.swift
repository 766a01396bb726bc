// The wall clock.
import Foundation
import RockpoolCore

/// The system's wall clock.
enum WallClock {
    @Sendable static func now() -> Timestamp {
        Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
}
