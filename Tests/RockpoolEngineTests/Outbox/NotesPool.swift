// Helpers of the outbox's tests: an upstream with declared notes and comments, and short constructors for its responses.
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting

extension Upstream {
    /// Notes, each with comments; the declaration has `offline_response: optimistic` unless a test passes another value.
    static func declared(
        _ response: Resource.OfflineResponse = .optimistic, version: String = "etag", _ change: (inout Upstream) -> Void = { _ in }
    ) -> Upstream {
        .notes {
            $0.resources = [
                Resource(collection: "/notes", item: "/notes/{id}", version: version, offlineResponse: response),
                Resource(collection: "/notes/{note}/comments", version: version, offlineResponse: response),
            ]
            change(&$0)
        }
    }
}

extension ScriptedAnswer {
    /// Returns a representation that may be stored for a minute.
    static func json(_ body: String, etag: String? = nil, status: Int = 200, _ more: HTTPFields = [:]) -> ScriptedAnswer {
        var fields: HTTPFields = [.contentType: "application/json", .cacheControl: "max-age=60"]
        fields[.eTag] = etag
        for field in more { fields[field.name] = field.value }
        return .status(status, fields, body)
    }

    /// Returns the response to a create.
    static func created(_ id: Int, in collection: String = "/notes") -> ScriptedAnswer {
        .json(#"{"id":\#(id)}"#, status: 201, [.location: "\(collection)/\(id)"])
    }
}

extension ScriptedEngine {
    static let json: HTTPFields = [.contentType: "application/json"]

    /// Returns an engine that has stored the first note and then gone offline.
    static func holdingOne(
        _ upstream: Upstream = .declared(), body: String = #"{"id":1,"title":"sea","done":false}"#, etag: String? = "\"v1\""
    ) async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [upstream])
        pool.origin.next(.json(body, etag: etag))
        await pool.ask(.get, "/notes/1")
        pool.clock.advance(by: .seconds(1))
        pool.goOffline()
        return pool
    }

    /// Sends a request with a JSON body.
    @discardableResult
    func tell(_ method: HTTPRequest.Method, _ target: String, _ body: String? = nil, _ fields: HTTPFields = [:]) async -> WholeReply {
        var fields = fields
        if body != nil, !fields.contains(.contentType) { fields[.contentType] = "application/json" }
        return await ask(method, target, fields, body: body)
    }

    /// Returns all operations, oldest first.
    func all() async throws -> [QueuedWrite] {
        try await operations(Set(OperationState.allCases)).sorted { $0.sequence < $1.sequence }
    }

    func states() async throws -> [OperationState] { try await all().map(\.state) }

    /// Sets the upstream online and runs one pass of a replayer.
    @discardableResult
    func replay(_ answers: ScriptedAnswer...) async -> Replayer.Report {
        for answer in answers { origin.next(answer) }
        comeOnline()
        return await Replayer(engine: engine).runOnce()
    }
}
