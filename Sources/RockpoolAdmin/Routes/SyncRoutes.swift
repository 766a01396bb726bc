// `/v1/sync/*` and `/v1/entities`: push and pull now, the sync log, and the state of each resource (docs/reference/admin-api.md#sync).
import Hummingbird
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct SyncRoutes {
    /// How long a call waits for a push to end.
    private static let pushLimit = Duration.seconds(30)

    let data: DataStore
    let commands: OutboxCommands
    let puller: Puller
    let credentials: Credentials

    func add(to router: Router<AdminContext>) {
        router.post("/v1/sync/push") { request, _ in
            let anyway = try AdminQuery(request, known: ["now"]).flag(named: "now")
            return Response.json(Self.document(of: try await commands.push(within: Self.pushLimit, anyway: anyway)))
        }
        router.post("/v1/sync/pull") { _, _ in Response.json(Self.document(of: await puller.runOnce())) }
        router.get("/v1/sync/log") { request, _ in try await log(request: request) }
        router.get("/v1/entities") { request, _ in try await entities(request: request) }
    }

    private static func document(of report: PushReport) -> JSONValue {
        let open = report.open.sorted { $0.key.rawValue < $1.key.rawValue }.map { ($0.key.rawValue, JSONValue.integer($0.value)) }
        var document: JSONValue = [
            "flushed": .integer(report.flushed), "delivered": .integer(report.delivered), "open": .object(JSONObject(open)),
        ]
        document["held"] = RetryHold.json(of: report.held)
        return document
    }

    private static func document(of report: PullReport) -> JSONValue {
        ["items": .array(report.scopes.map(document)), "next": .null]
    }

    private static func document(of scope: PullReport.Scope) -> JSONValue {
        [
            "upstream": .string(scope.upstream), "resource": .string(scope.resource),
            "identity": .string(scope.isPrivate ? "private" : "shared"), "full": .bool(scope.isFull), "requests": .integer(scope.requests),
            "changed": .integer(scope.changed), "gone": .integer(scope.gone), "written": .integer(scope.written),
            "removed": .integer(scope.removed), "invalidated": .integer(scope.invalidated), "withheld": .integer(scope.withheld),
            "conflictsAhead": .integer(scope.conflictsAhead), "error": .optional(scope.error),
        ]
    }

    /// Lists log lines, the newest first.
    private func log(request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: ["cursor", "limit"])
        let limit = Int(try query.number(named: "limit", in: 1...1000, default: 100))
        let before = try query.number(named: "cursor", in: 1...Int64.max, default: .max)
        let lines = try await data.log(before: before, limit: limit + 1)
        return .json([
            "items": .array(
                lines.prefix(limit).map { line in
                    [
                        "at": .time(line.at), "operation": .optional(line.operation), "event": .string(line.event),
                        "method": .optional(line.method), "url": .optional(line.url.map { SecretParameters.redacted(url: $0) }),
                        "client": .optional(line.principal.map(credentials.resolved)), "userAgent": .optional(line.userAgent),
                        "detail": .optional(line.detail.map { line.event == "purged" ? SecretParameters.redacted(url: $0) : $0 }),
                    ]
                }),
            "next": .optional(lines.count > limit ? String(lines[limit - 1].number) : nil),
        ])
    }

    private func entities(request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: ["cursor", "limit"])
        let (limit, start) = (
            try query.number(named: "limit", in: 1...1000, default: 100), try query.number(named: "cursor", in: 0...1_000_000, default: 0)
        )
        let all = try await commands.entities()
        let page = all.dropFirst(Int(start)).prefix(Int(limit))
        return .json([
            "items": .array(page.map(Self.document)),
            "next": .optional(page.endIndex < all.count && !page.isEmpty ? String(page.endIndex) : nil),
        ])
    }

    private static func document(of standing: ResourceSyncStatus) -> JSONValue {
        [
            "upstream": .string(standing.upstream), "resource": .string(standing.resource), "cached": .integer(standing.cached),
            "serverCount": standing.serverCount.map { .integer($0) } ?? .null, "pending": .integer(standing.pending),
            "conflicts": .integer(standing.conflicts), "lastSync": .time(standing.lastSync),
            "states": .object(JSONObject(EntityState.allCases.map { ($0.rawValue, .integer(standing.states[$0, default: 0])) })),
            "strategy": .string(standing.strategy.rawValue),
            "fields": .array(
                standing.fields.sorted { $0.key < $1.key }.map { ["pointer": .string($0.key), "strategy": .string($0.value)] }),
        ]
    }
}
