// The findings about `Via` and compression, by origin (docs/reference/behaviour.md#via).
import HTTPTypes
package import RockpoolCore
import Synchronization

/// Leaves `Via` out of requests to upstreams whose compression depends on it. `CDN-Loop` still tells loops.
package final class ViaHabits: Sendable {
    /// Maximum number of remembered origins.
    private static let limit = 1024

    private let habits = Mutex<[OriginAddress: ViaHabit]>([:])

    /// Removes Rockpool's member of `Via` where it should not be sent. Returns true if the request has it.
    /// - Parameter name: Rockpool's name in `Via`.
    func prepare(_ head: inout RequestHead, rule: SendVia, name: String, now: Timestamp) -> Bool {
        let members = head.fields[values: .via]
        guard let last = members.last, last.hasSuffix(" " + name) else { return false }
        let isWithheld =
            switch rule {
            case .always: false
            case .never: true
            case .auto: habits.withLock { $0[head.origin]?.withholds(at: now) } == true
            }
        guard isWithheld else { return true }
        head.fields[values: .via] = Array(members.dropLast())
        return false
    }

    /// Takes account of an answer.
    func learn(from answer: ResponseHead, length: Int64?, to head: RequestHead, hadVia: Bool, now: Timestamp) {
        habits.withLock { habits in
            if habits[head.origin] == nil, habits.count >= Self.limit { habits.removeAll() }
            habits[head.origin, default: ViaHabit()].learn(
                from: answer, length: length, to: head, hadVia: hadVia, now: now)
        }
    }

    /// True if the upstream was found to compress only without `Via`.
    package func isWithheld(from origin: OriginAddress) -> Bool { habits.withLock { $0[origin]?.isProved } == true }
}
