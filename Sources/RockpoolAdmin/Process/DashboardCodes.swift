// One-time codes that open the dashboard with the rights of the caller (docs/security-model.md#dashboard).
import RockpoolCore
import Synchronization

/// Codes that each buy the admin token once, within a minute.
final class DashboardCodes: Sendable {
    /// The time for which a code is valid.
    static let life = TimeSpan.minutes(1)
    /// The most codes that are valid at once; the oldest is dropped.
    private static let most = 16

    private let open = Mutex<[(code: String, until: Timestamp)]>([])

    /// Returns a new code of 128 random bits, in hexadecimal digits.
    func issue(now: Timestamp) -> (code: String, until: Timestamp) {
        let halves = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 16) }
        let code = halves.map { String(repeating: "0", count: 16 - $0.count) + $0 }.joined()
        let until = now + Self.life
        open.withLock { open in
            open = (open + [(code, until)]).suffix(Self.most)
        }
        return (code, until)
    }

    /// Takes a code back; false if it was never issued, was used, or has expired.
    func use(_ code: String, now: Timestamp) -> Bool {
        open.withLock { open in
            open.removeAll { $0.until < now }
            guard let index = open.firstIndex(where: { $0.code == code }) else { return false }
            open.remove(at: index)
            return true
        }
    }
}
