// `/v1/operations`: lists, shows and exports the outbox (docs/reference/admin-api.md#operations).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct OperationRoutes {
    let data: DataStore
    let active: ActiveConfiguration
    let commands: OutboxCommands
    let documents: OperationDocuments
    let now: @Sendable () -> Timestamp

    func add(to router: Router<AdminContext>) {
        let routes = router.group("/v1/operations")
        routes.get { request, _ in try await list(request: request) }
        routes.get("export") { request, _ in try export(request: request) }
        routes.post("import") { request, _ in try await takeIn(request: request) }
        routes.get(":id") { _, context in try await one(id: id(in: context)) }
        addSteering(to: routes)
    }

    /// The operation that a path names.
    func id(in context: AdminContext) async throws -> String? {
        try await NamedID.whole(context.parameters.get("id"), of: .operation, in: data)
    }

    private func list(request: Request) async throws -> Response {
        let query = try AdminQuery(
            request, known: PagePlace.names.union(["state", "lane", "upstream", "method", "path", "olderThanSeconds", "nodes"]))
        let place = try PagePlace(query)
        var filter = try filter(from: query)
        filter.method = try query.one(named: "method")?.uppercased()
        filter.path = try query.one(named: "path")
        let age = try query.number(named: "olderThanSeconds", in: 0...Int64.max / 1000, default: 0)
        if age > 0 { filter.olderThan = .seconds(age) }
        (filter.limit, filter.offset) = (place.limit, place.offset)
        if let cursor = try query.one(named: "cursor") {
            guard let sequence = Int64(cursor) else { return .problem(.badRequest, detail: "cursor must be the `next` of a page") }
            filter.cursor = sequence
        }
        let places = FleetPlaces(data: data, isAsked: try query.flag(named: "nodes"))
        try await places.prepare()
        let page = try await data.operations(filter)
        if page.items.isEmpty { try refuseUnknownUpstream(filter.upstream) }
        let items = try await places.add(to: documents.documents(of: page.items), of: page.items)
        var document: JSONValue = [
            "items": .array(items), "next": .optional(page.next.map { String($0) }),
        ]
        if place.isCounted { document["total"] = .integer(try await data.count(of: filter)) }
        return .json(document)
    }

    /// Throws a 404 if no upstream has this name. Operations of an upstream that is declared no longer are found all the same.
    private func refuseUnknownUpstream(_ name: String?) throws(Refusal) {
        if let name, active.routes.upstream(named: name) == nil { throw .unknown(upstream: name, among: active) }
    }

    /// The filter of a query; without `state` it selects open operations.
    private func filter(from query: AdminQuery) throws(Refusal) -> OperationFilter {
        var states: Set<OperationState>?
        if let asked = try query.one(named: "state") {
            let words = asked.split(separator: ",").map(String.init)
            let known = asked == "all" ? OperationState.allCases : words.compactMap(OperationState.init)
            guard asked == "all" || known.count == words.count, !known.isEmpty else {
                throw .badRequest("state takes \(OperationState.allCases.map(\.rawValue).joined(separator: ", ")) or all")
            }
            states = Set(known)
        }
        return OperationFilter(states: states, lane: try query.filled(named: "lane"), upstream: try query.one(named: "upstream"))
    }

    private func one(id: String?) async throws -> Response {
        guard let id, let operation = try await data.operation(id: id) else { return notFound(id: id) }
        return .json(try await documents.document(of: operation))
    }

    func notFound(id: String?) -> Response { .problem(.notFound, detail: "no operation \(id ?? "")") }

    /// The most bytes of a call: a command sends an export in parts of 1 MiB, or of one line.
    private static let importLimit = Int.mib(256)

    private func takeIn(request: Request) async throws -> Response {
        _ = try AdminQuery(request, known: [])
        guard let body = try? await request.body.collect(upTo: Self.importLimit) else {
            return .problem(.bodyTooLarge, detail: "send lines of an export, \(Self.importLimit >> 20) MiB at most")
        }
        do {
            let operations = try body.readableBytesView.split(separator: UInt8(ascii: "\n")).map { line in
                guard let value = try? JSONValue.parse(Array(line)) else { throw PortableOperation.Fault(why: "a line is no JSON") }
                return try PortableOperation(value)
            }
            let taken = try await commands.takeIn(operations)
            return .json([
                "imported": .integer(taken.operations.count), "there": .integer(taken.there), "repeated": .integer(taken.repeated),
                "strangers": .integer(taken.strangers),
            ])
        } catch let fault as PortableOperation.Fault {
            return .problem(.badRequest, detail: "\(fault)")
        }
    }

    /// An export that fails midway ends without the last chunk, so that the client recognizes it as incomplete.
    private func export(request: Request) throws -> Response {
        let query = try AdminQuery(request, known: ["format", "state", "lane", "upstream", "secrets"])
        guard let format = OutboxExport.Format(rawValue: try query.one(named: "format") ?? "jsonl") else {
            return .problem(.badRequest, detail: "format is \(OutboxExport.Format.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        let export = OutboxExport(
            data: data, active: active, format: format, filter: try filter(from: query),
            withSecrets: try query.flag(named: "secrets"))
        return Response(
            status: .ok, headers: [.contentType: export.contentType, .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await export.run { try await writer.write($0) }
                try await writer.finish(nil)
            })
    }
}

/// `/v1/operations`: retry, edit, cancel, discard (docs/reference/admin-api.md#steering; docs/outbox.md#steering, P13).
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
