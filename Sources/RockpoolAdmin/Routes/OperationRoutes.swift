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
