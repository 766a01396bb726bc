// `/v1/operations`: retry, edit, cancel, discard (docs/reference/admin-api.md#steering; docs/outbox.md#steering, P13).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore

extension OperationRoutes {
    /// The most bytes of an edit: a body of the default `queue.max_body` in base64, and some more.
    private static let editLimit = Int.mib(16)

    func addSteering(to routes: RouterGroup<AdminContext>) {
        routes.post("flush") { request, _ in try await flush(request: request) }
        routes.post("retry") { request, _ in try await retrySelected(request: request) }
        routes.post(":id/retry") { request, context in try await steer(.retry, id: id(in: context), request: request) }
        routes.post(":id/cancel") { request, context in try await steer(.cancel, id: id(in: context), request: request) }
        routes.post(":id/repeat") { request, context in try await separateRepeats(of: id(in: context), request: request) }
        routes.patch(":id") { request, context in try await edit(id: id(in: context), request: request) }
        routes.delete(":id") { request, context in
            let response = try await steer(.discard, id: id(in: context), request: request)
            return response.status == .ok ? Response(status: .noContent) : response
        }
    }

    private func steer(_ steering: OperationSteering, id: String?, request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: [steering == .retry ? "now" : "tree"])
        let (withTree, anyway) = (try query.flag(named: "tree"), try query.flag(named: "now"))
        return try await answer(id: id, status: .ok) {
            try await commands.steer(steering, id: $0, withTree: withTree, anyway: anyway)
        }
    }

    /// The writes that repeats have become.
    private func separateRepeats(of id: String?, request: Request) async throws -> Response {
        _ = try AdminQuery(request, known: [])
        guard let id, let made = try await commands.separateRepeats(of: id) else { return notFound(id: id) }
        return .json(["items": .array(try await documents.documents(of: made))], status: .created)
    }

    private func edit(id: String?, request: Request) async throws -> Response {
        guard let body = try? await request.body.collect(upTo: Self.editLimit),
            let document = (try? JSONValue.parse(Array(body.readableBytesView)))?.object
        else {
            return .problem(
                .badRequest, detail: #"send {"method", "url", "headers", "body"}, any of them, \#(Self.editLimit >> 20) MiB at most"#)
        }
        let edit = try OperationEdit(document)
        return try await answer(id: id, status: .created) { try await commands.edit(id: $0, edit: edit) }
    }

    /// The changed operation, with a `warning` if its effect cannot be guaranteed.
    private func answer(
        id: String?, status: HTTPResponse.Status, command: (String) async throws -> OutboxCommandResult?
    ) async throws -> Response {
        guard let id, let steered = try await command(id) else { return notFound(id: id) }
        var document = try await documents.document(of: steered.operation)
        if let warning = steered.warning { document["warning"] = .string(warning) }
        var response = Response.json(document, status: status)
        if status == .created { response.headers[.location] = "/v1/operations/\(steered.operation.id)" }
        return response
    }

    private func retrySelected(request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: ["lane", "upstream", "reason", "since", "now"])
        let selection = RetrySelection(
            lane: try query.filled(named: "lane"), upstream: try query.one(named: "upstream"), reason: try reason(in: query),
            since: try since(in: query))
        guard selection.lane != nil || selection.reason != nil || selection.since != nil else {
            throw Refusal.badRequest("lane is missing, and so are reason and since")
        }
        let (retried, uncertain, held) = try await commands.retry(selection, anyway: try query.flag(named: "now"))
        var document: JSONValue = ["retried": .array(retried.map { .string($0) }), "uncertain": .array(uncertain.map { .string($0) })]
        document["held"] = RetryHold.json(of: held)
        return .json(document)
    }

    private func reason(in query: AdminQuery) throws(Refusal) -> OperationReason? {
        guard let word = try query.filled(named: "reason") else { return nil }
        guard let reason = OperationReason(rawValue: word) else {
            throw .badRequest("reason takes \(OperationReason.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return reason
    }

    /// The moment of a duration before now, such as `10m`, or of RFC 3339.
    private func since(in query: AdminQuery) throws(Refusal) -> Timestamp? {
        guard let text = try query.filled(named: "since") else { return nil }
        if let moment = RFC3339.parse(text) { return moment }
        guard let span = try? TimeSpan(parsing: text) else {
            throw .badRequest("since takes a duration such as 10m, or a time of RFC 3339")
        }
        return now() - span
    }

    /// Makes every operation due now that waits for its next attempt.
    private func flush(request: Request) async throws -> Response {
        let anyway = try AdminQuery(request, known: ["now"]).flag(named: "now")
        do {
            let report = try await commands.flush(anyway: anyway)
            var document: JSONValue = ["flushed": .integer(report.flushed)]
            document["held"] = RetryHold.json(of: report.held)
            return .json(document)
        } catch {
            return .problem(.notQueueable, detail: "the outbox cannot be read: \(error)")
        }
    }
}

extension RetryHold {
    /// The member `held` of a reply; nil where nothing is held back.
    static func json(of holds: [RetryHold]) -> JSONValue? {
        guard !holds.isEmpty else { return nil }
        return .array(
            holds.map { ["upstream": .string($0.upstream), "operations": .integer($0.operations), "until": .time($0.until)] })
    }
}
