// `POST /v1/notify/test`: sends a test by every rule of `notify` (docs/reference/admin-api.md#notices).
import Hummingbird
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct NotifyRoutes {
    /// The time for a webhook to answer before it is reported as waiting.
    private static let patience = Duration.seconds(10)

    let sender: NoticeSender
    let data: DataStore
    let active: ActiveConfiguration
    let events: EngineEvents

    func add(to router: Router<AdminContext>) {
        router.post("/v1/notify/test") { _, _ in await test() }
    }

    private func test() async -> Response {
        let rules = active.configuration.notify
        let rows = await withTaskGroup(of: (Int, JSONValue).self) { group in
            for (index, rule) in rules.enumerated() { group.addTask { (index, await row(for: rule)) } }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
        return .json(["items": .array(rows), "next": .null])
    }

    private func row(for rule: NoticeRule) async -> JSONValue {
        let (outcome, detail, operation): (String, String?, String?)
        switch await sender.send(Notice(nil), by: rule) {
        case .sent: (outcome, detail, operation) = ("sent", nil, nil)
        case .failed(let why): (outcome, detail, operation) = ("failed", why, nil)
        case .queued(let queued):
            let known = await settled(queued)
            switch known.state {
            case .delivered: (outcome, detail) = ("sent", known.result.map { "answered with \($0.head.status)" })
            case .dead, .cancelled: (outcome, detail) = ("failed", known.lastError)
            default: (outcome, detail) = ("waiting", known.lastError ?? "not answered yet; it is sent until it is")
            }
            operation = queued.id
        }
        return [
            "on": .array(rule.on.map { .string($0.rawValue) }), "target": .string(rule.target), "outcome": .string(outcome),
            "detail": .optional(detail), "operation": .optional(operation),
        ]
    }

    /// Waits until an operation has ended, failed once, or the time is over.
    private func settled(_ operation: QueuedWrite) async -> QueuedWrite {
        let deadline = ContinuousClock.now + Self.patience
        var known = operation
        while true {
            let version = events.version
            known = (try? await data.operation(id: operation.id)) ?? known
            if known.state.hasEnded || known.state == .dead || known.lastError != nil && known.state != .inflight { return known }
            guard await events.change(after: version, before: deadline) else { return known }
        }
    }
}
