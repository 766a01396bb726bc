// The pauses that one upstream demands of its clients by 429 or 503 (docs/outbox.md#gate): what it tells one of them holds back that one.

/// Until when each client waits. The clients beyond the limit whose pauses end first are forgotten.
struct ClientPauses: Sendable {
    private static let limit = 1024

    private struct Pause {
        let until: Timestamp
        let isProved: Bool
    }

    private var pauses: [String: Pause] = [:]

    /// The end of the longest pause; nil without any.
    var longest: Timestamp? { pauses.values.map(\.until).max() }

    /// Until when this client waits; nil if it was told nothing.
    func end(for client: String) -> Timestamp? { pauses[client]?.until }

    /// Notes what the upstream has told a client.
    ///
    /// - Parameter isProved: true if the upstream has accepted the client's credential. All others count as one: anybody can be many of them.
    /// - Returns: until when all clients wait, because another one was told the same; nil if no other was.
    mutating func tell(_ client: String, isProved: Bool, until moment: Timestamp, now: Timestamp) -> Timestamp? {
        pauses = pauses.filter { $0.value.until > now }
        if pauses.count >= Self.limit, pauses[client] == nil, let first = pauses.min(by: { $0.value.until < $1.value.until }) {
            pauses[first.key] = nil
        }
        let until = max(pauses[client]?.until ?? moment, moment)
        pauses[client] = Pause(until: until, isProved: isProved)
        let others = pauses.filter { $0.key != client && ($0.value.isProved || isProved) }
        return others.values.map(\.until).max().map { min($0, until) }
    }

    /// Shifts all ends after the wall clock was set back.
    mutating func setBack(by span: TimeSpan) {
        pauses = pauses.mapValues { Pause(until: $0.until - span, isProved: $0.isProved) }
    }
}
