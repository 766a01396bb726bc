// How often a client may try passwords that are not known to be right (docs/security-model.md#proxy-passwords).

/// Counts the attempts of each client within a window of time.
package struct AttemptLimit: Sendable {
    /// Attempts of one client per window.
    package static let attempts = 10
    package static let window = TimeSpan.minutes(1)
    /// Attempts that wait for their check at once, of all clients together.
    package static let waiting = 16
    /// Clients that are counted at once.
    private static let clients = 4000

    private var windows: [String: (began: Timestamp, count: Int)] = [:]
    private var checks = 0

    package init() {}

    /// Begins an attempt, to be ended by `end`. Returns the time to wait instead where the limit is reached.
    package mutating func begin(_ client: String, now: Timestamp) -> TimeSpan? {
        guard checks < Self.waiting else { return .seconds(1) }
        if windows.count >= Self.clients { windows = windows.filter { Self.isOpen($0.value.began, now) } }
        if let known = windows[client], Self.isOpen(known.began, now) {
            guard known.count < Self.attempts else { return known.began + Self.window - now }
            windows[client] = (known.began, known.count + 1)
        } else {
            guard windows.count < Self.clients else { return Self.window }
            windows[client] = (now, 1)
        }
        checks += 1
        return nil
    }

    /// Ends an attempt. A right password is not counted.
    package mutating func end(_ client: String, isRight: Bool) {
        checks -= 1
        guard isRight, let known = windows[client] else { return }
        windows[client] = known.count > 1 ? (known.began, known.count - 1) : nil
    }

    /// False also after the clock was set back.
    private static func isOpen(_ began: Timestamp, _ now: Timestamp) -> Bool { now >= began && now - began < window }
}
