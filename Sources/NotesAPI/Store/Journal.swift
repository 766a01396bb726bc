// The log of a notes server, and the number of effects per key.
import DequeModule
import RockpoolCore

struct Journal: Sendable {
    /// The number of lines kept; the oldest are dropped.
    static let limit = 50_000

    private(set) var lines: Deque<Seen> = []
    private var arrivals = 0
    private(set) var effects = 0
    private(set) var effectsByKey: [String: Int] = [:]

    /// Logs an arrived request and returns its sequence number.
    mutating func arrived(_ request: NotesRequest, now: Timestamp) -> Int {
        defer { arrivals += 1 }
        lines.append(
            Seen(
                sequence: arrivals, at: now, method: request.method, target: request.target, key: request.idempotencyKey,
                fields: request.fields, body: request.body, outcome: .running, hasEffect: false))
        if lines.count > Self.limit { lines.removeFirst() }
        return arrivals
    }

    /// Records that the request changed something.
    mutating func took(effect sequence: Int, key: String?) {
        update(sequence) { [effects] in
            $0.hasEffect = true
            $0.effectOrder = effects
        }
        effects += 1
        if let key { effectsByKey[key, default: 0] += 1 }
    }

    mutating func ended(_ sequence: Int, with outcome: Seen.Outcome) {
        update(sequence) { $0.outcome = outcome }
    }

    private mutating func update(_ sequence: Int, _ change: (inout Seen) -> Void) {
        guard let first = lines.first, sequence >= first.sequence else { return }
        change(&lines[sequence - first.sequence])
    }
}
