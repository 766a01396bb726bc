// One message to an operator: what has happened, its cause, and the next command (docs/guide/operating.md#alarms).

/// A notice, of one event or of several of the same kind and upstream.
package struct Notice: Hashable, Sendable {
    /// Operations that a notice names at most.
    package static let operationLimit = 10

    /// nil for a test.
    package var kind: NoticeKind?
    package var upstream: String?
    /// The number of events that it stands for.
    package var count = 1
    /// Ids of the operations, the first ones.
    package var operations: [String] = []
    /// The measured value, such as "has waited for 12m".
    package var measure: String?
    /// The last known error.
    package var cause: String?
    /// The line of the outbox's log on which its first event rests.
    package var line: Int64?

    package init(_ kind: NoticeKind?, upstream: String? = nil) {
        self.kind = kind
        self.upstream = upstream
    }

    /// Adds a later event of the same kind and upstream.
    package mutating func fold(_ later: Notice) {
        count += later.count
        operations = Array((operations + later.operations).prefix(Self.operationLimit))
        cause = later.cause ?? cause
        measure = later.measure ?? measure
    }

    /// One sentence for people.
    package var summary: String {
        let place = upstream.map { " to \($0)" } ?? ""
        let writes = count == 1 ? "A queued write\(place) is" : count.counted("", "queued writes\(place) are")
        let what =
            switch kind {
            case .dead, .conflicted, .uncertain, .parked: "\(writes) \(kind?.rawValue ?? "")"
            case .oldestPending: "A queued write\(place) \(measure ?? "waits")"
            case .massRefusal: "The queue\(place) pauses for \(measure ?? "a route")"
            case .storage: measure ?? "Storage runs short"
            case .away: "\(upstream ?? "An upstream") \(measure ?? "does not answer")"
            case nil: "This is a test of a notice"
            }
        return what + (cause.map { ": \($0)" } ?? "")
    }

    /// The command that shows more.
    package var next: String {
        switch kind {
        case .dead, .conflicted, .uncertain, .parked:
            if count == 1, let id = operations.first { return "rockpool outbox show \(id)" }
            return "rockpool outbox ls --state \(kind?.rawValue ?? "all")" + (upstream.map { " --upstream \($0)" } ?? "")
        case .oldestPending: return operations.first.map { "rockpool outbox show \($0)" } ?? "rockpool outbox ls"
        case .massRefusal: return "rockpool outbox ls --state dead,uncertain,conflicted" + (upstream.map { " --upstream \($0)" } ?? "")
        case .storage: return "rockpool storage-cleanup --dry-run"
        case .away: return "rockpool network"
        case nil: return "rockpool status"
        }
    }

    /// The payload of a webhook, and the input of a command.
    package func json(at moment: Timestamp) -> JSONValue {
        [
            "type": .string("rockpool." + (kind?.rawValue ?? "test")),
            "timestamp": .string(RFC3339.format(moment)),
            "data": [
                "event": .string(kind?.rawValue ?? "test"),
                "upstream": .optional(upstream),
                "count": .number(JSONNumber(Int64(count))),
                "summary": .string(summary),
                "cause": .optional(cause),
                "next": .string(next),
                "operations": .array(operations.map { .string($0) }),
            ],
        ]
    }
}
