// Operations of the outbox as tables (docs/reference/admin-api.md#operations).
import RockpoolCore

struct OperationReport: TabularReport, Hashable {
    /// One attempt to send the operation.
    struct Attempt: Decodable, Hashable {
        var number: Int
        var startedAt: String?
        var endedAt: String?
        var status: Int?
        var error: String?
        var sent: String?
        var bytesSent: Int64?
        var freshConnection: Bool?
    }

    /// A reference to another operation.
    struct Link: Decodable, Hashable {
        var id: String
        var state: String?
    }

    var id: String
    var state: String
    var reason: String?
    var method: String
    var url: String
    var upstream: String?
    var client: String?
    var userAgent: String?
    var bodyBytes: Int64?
    var entity: String?
    var lane: String?
    var idempotencyKey: String?
    var attempts: Int?
    var acceptedAt: String?
    var nextAttemptAt: String?
    var lastError: String?
    var priority: Int?
    var repeats: Int?
    var localId: String?
    var serverId: String?
    var waiting: String?
    var blockedBy: Link?
    var dependsOn: [String]?
    var fixes: String?
    var supersededBy: String?
    var endedAt: String?
    var purgeAt: String?
    var conflict: String?
    var warning: String?
    var attemptLog: [Attempt]?

    var tables: [TextTable] {
        let facts: [(String, TextTable.Cell?)] = [
            ("id", .init(id)), ("state", stateCell), ("request", "\(method) \(url)"), ("upstream", upstream.map { .init($0) }),
            ("client", client.map { .init($0) }),
            ("entity", entity.map { .init($0) }), ("lane", lane.map { .init($0) }), ("idempotency key", idempotencyKey.map { .init($0) }),
            ("attempts", attempts.map { "\($0)" }), ("accepted", acceptedAt.map { .init(ForPeople.time($0)) }),
            ("next attempt", nextAttemptAt.map { .init(ForPeople.time($0)) }), ("last error", lastError.map { .init($0, .bad) }),
            ("priority", priority.map { "\($0)" }), ("repeats", repeats.flatMap { $0 > 0 ? "\($0), counted as this one" : nil }),
            ("why", waiting.map { .init($0) }),
            ("conflict", conflict.map { "rockpool conflicts show \($0)" }),
            ("blocked by", blockedBy.map { .init("\($0.id) (\($0.state ?? "?"))") }),
            ("depends on", (dependsOn ?? []).isEmpty ? nil : .init((dependsOn ?? []).joined(separator: ", "))),
            ("replaces", fixes.map { .init($0) }), ("replaced by", supersededBy.map { .init($0) }),
            ("ended", endedAt.map { .init(ForPeople.time($0)) }), ("purged at", purgeAt.map { .init(ForPeople.time($0), .warning) }),
            ("local id", localId.map { .init($0) }), ("server id", serverId.map { .init($0) }),
        ]
        return [.facts(facts.compactMap { name, cell in cell.map { (name, $0) } }), timeline]
    }

    private var timeline: TextTable {
        TextTable(
            columns: [
                .number("ATTEMPT"), .text("STARTED"), .text("ENDED"), .text("ANSWER"), .text("SENT"), .number("BYTES"), .text("CONNECTION"),
            ],
            rows: (attemptLog ?? []).map { attempt in
                [
                    "\(attempt.number)", .init(ForPeople.time(attempt.startedAt)), .init(ForPeople.time(attempt.endedAt)),
                    .init(attempt.status.map { "\($0)" } ?? attempt.error ?? "–"), .init(attempt.sent ?? "–"),
                    .init(attempt.bytesSent.map { "\($0)" } ?? "–"), .init(attempt.freshConnection.map { $0 ? "new" : "reused" } ?? "–"),
                ]
            })
    }

    /// The reason why the operation is not delivered: its last error, and what it waits for.
    var why: String {
        let parts = [lastError, waiting].compactMap(\.self)
        return parts.isEmpty ? "–" : parts.joined(separator: "; ")
    }

    /// One line about what became of a retry: `ID is dead (rejected): 422; rockpool outbox show ID`.
    var outcome: String {
        let isWaiting = ["pending", "inflight"].contains(state)
        let answer = attemptLog?.last.flatMap { $0.status.map(String.init) ?? $0.error }
        let why = isWaiting ? waiting ?? lastError : answer
        let text = "\(id) \(isWaiting ? "waits" : "is \(state)")\(reason.map { " (\($0))" } ?? "")" + (why.map { ": \($0)" } ?? "")
        return state == "delivered" || isWaiting ? text : text + "; rockpool outbox show \(id) has the answer"
    }

    /// The state with its reason: `parked (auth)`.
    var stateCell: TextTable.Cell {
        let colour: Colour? =
            switch state {
            case "delivered": .good
            case "uncertain", "conflicted", "parked": .warning
            case "dead": .bad
            default: nil
            }
        return .init(state + (reason.map { " (\($0))" } ?? ""), colour)
    }
}

struct OperationListReport: TabularReport, Hashable {
    var items: [OperationReport]

    /// Announces the next purge, so that no operation is removed by surprise.
    private var purges: TextTable {
        let moments = items.compactMap(\.purgeAt).sorted()
        guard let first = moments.first else { return TextTable(columns: [], rows: []) }
        let text = "\(moments.count) failed will be purged, the first at \(ForPeople.time(first)): retry, edit or export them"
        return TextTable(columns: [.text("")], rows: [[.init(text, .warning)]])
    }

    var emptyNote: String? { "no operations" }

    var tables: [TextTable] {
        let ids = ForPeople.ids(items.map(\.id))
        return [
            TextTable(
                columns: [.id("ID"), .text("STATE"), .text("REQUEST"), .number("ATTEMPTS"), .text("ACCEPTED"), .text("WHY")],
                rows: zip(ids, items).map { id, operation in
                    [
                        .init(id), operation.stateCell, "\(operation.method) \(ForPeople.target(operation.url))",
                        "\(operation.attempts ?? 0)",
                        .init(ForPeople.age(operation.acceptedAt)), .init(operation.why),
                    ]
                }), purges,
        ]
    }
}

/// The writes of the outbox in groups (docs/reference/cli.md#outbox-summary).
struct OutboxSummary: TabularReport, Encodable, Equatable {
    struct Group: Codable, Hashable {
        var upstream: String
        /// The name of the client's identity; nil without a credential.
        var client: String?
        var method: String
        /// The path, with `*` in place of each id.
        var path: String
        var state: String
    }

    struct Row: Codable, Equatable {
        var group: Group
        var writes: Int
        var bodyBytes: Int64
        var oldest: String?
        /// The program that sent one of them, as it calls itself.
        var userAgent: String?
    }

    var items: [Row]

    init(of operations: [OperationReport]) {
        var rows: [Group: Row] = [:]
        for operation in operations {
            let group = Group(
                upstream: operation.upstream ?? "–", client: operation.client, method: operation.method, path: Self.path(of: operation.url),
                state: operation.state)
            var row = rows[group] ?? Row(group: group, writes: 0, bodyBytes: 0, oldest: operation.acceptedAt)
            row.writes += 1
            row.bodyBytes += operation.bodyBytes ?? 0
            row.userAgent = row.userAgent ?? operation.userAgent
            row.oldest = [row.oldest, operation.acceptedAt].compactMap(\.self).min()
            rows[group] = row
        }
        items = rows.values.sorted { ($0.bodyBytes, $0.writes, $1.group.path) > ($1.bodyBytes, $1.writes, $0.group.path) }
    }

    var emptyNote: String? { "no operations" }

    var tables: [TextTable] {
        let total = "\(items.reduce(0) { $0 + $1.writes }.counted("write")), \(ForPeople.bytes(items.reduce(0) { $0 + $1.bodyBytes }))"
        guard !items.isEmpty else { return [] }
        return [
            TextTable(
                columns: [
                    .number("WRITES"), .number("BODIES"), .text("STATE"), .text("UPSTREAM"), .text("REQUEST"), .text("OLDEST"),
                    .text("PROGRAM"), .text("CLIENT"),
                ],
                rows: items.map { row in
                    [
                        "\(row.writes)", .init(ForPeople.bytes(row.bodyBytes)), .init(row.group.state), .init(row.group.upstream),
                        "\(row.group.method) \(row.group.path)", .init(ForPeople.age(row.oldest)),
                        .init(row.userAgent ?? "–"), .init(row.group.client ?? "–"),
                    ]
                }),
            .facts([("all", .init(total))]),
        ]
    }

    /// The path of a URL without its query, with `*` for segments that contain a digit: ids, in every common form.
    private static func path(of url: String) -> String {
        let start = url.firstRange(of: "://").map { url[$0.upperBound...].firstIndex(of: "/") ?? url.endIndex } ?? url.startIndex
        let segments = url[start...].prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false)
        return segments.enumerated().map { index, segment in
            let isVersion = segment.count <= 3 && segment.first == "v"
            return segment.contains(where: \.isNumber) && !isVersion ? "*" : String(segment)
        }.joined(separator: "/")
    }
}

/// The result of `POST /v1/operations/retry`.
struct LaneRetryReport: Decodable, Equatable {
    var retried: [String]
    var uncertain: [String]
    var held: [HeldReport]?

    /// - Parameter place: what was retried, for people.
    func lines(of place: String) -> [String] {
        if retried.isEmpty, uncertain.isEmpty, held == nil { return ["nothing to retry in \(place)"] }
        return retried.map { "\($0) will be retried" }
            + uncertain.map { "\($0) is not retried: it may have taken effect; retry it by its id if that may happen twice" }
            + (held ?? []).map(\.line)
    }
}

/// The operations of one upstream that `Retry-After` holds back.
struct HeldReport: Decodable, Equatable {
    var upstream: String
    var operations: Int
    var until: String

    var line: String {
        "\(upstream) demands to wait until \(ForPeople.time(until)): \(operations) held back (--now sends anyway)"
    }
}
