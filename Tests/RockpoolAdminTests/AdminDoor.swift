// The admin API called without a socket: the real server's router over a real engine and real stores.
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOEmbedded
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Synchronization

@testable import RockpoolAdmin

/// One pool and its admin API.
struct AdminDoor: Sendable {
    let pool: ScriptedEngine
    private let server: AdminServer

    init(_ pool: ScriptedEngine) {
        self.pool = pool
        server = AdminServer(
            engine: pool.engine, cleaner: Cleaner(engine: pool.engine), puller: Puller(engine: pool.engine),
            notices: Announcer(engine: pool.engine, local: NoLocalNotices()).sender, settings: AdminSettings(), socketPath: "/nowhere",
            token: "token", startedAt: pool.clock.now,
            doors: ClientEndpoints(proxy: "127.0.0.1:7625", gateways: { [:] }, certificatePath: "/nowhere/ca.pem"), logger: .silent,
            onBound: { _ in })
    }

    /// The response to a call.
    struct Answer: Sendable {
        var status: Int
        var fields: HTTPFields
        var text: String
        var json: JSONValue { (try? JSONValue.parse(Array(text.utf8))) ?? .null }
        var detail: String { json["detail"]?.string ?? "" }
    }

    /// Method and path of every route, with variables as `{name}`.
    var routes: Set<String> { Set(server.router().routes.map { "\($0.method) \($0.path)" }) }

    /// Calls the API like a script on this machine, over TCP.
    func ask(
        _ method: HTTPRequest.Method = .get, _ target: String, body: some Sequence<ByteBuffer> & Sendable, token: String? = "token",
        fields: HTTPFields = [:]
    ) async throws -> Answer {
        var head = HTTPRequest(method: method, scheme: "http", authority: "127.0.0.1:7626", path: target, headerFields: fields)
        if let token { head.headerFields[.authorization] = "Bearer \(token)" }
        let request = Request(head: head, body: RequestBody(asyncSequence: Feed(Array(body))))
        let context = AdminContext(source: .init(channel: EmbeddedChannel(), logger: .silent))
        let response = try await server.router().buildResponder().respond(to: request, context: context)
        let gathered = Gathered()
        try await response.body.write(gathered)
        return Answer(status: response.status.code, fields: response.headers, text: gathered.text)
    }

    func ask(_ method: HTTPRequest.Method = .get, _ target: String, _ body: String = "", token: String? = "token") async throws -> Answer {
        try await ask(method, target, body: [ByteBuffer(string: body)], token: token)
    }

    /// Returns the listed URLs without their origin.
    func listed(_ query: String = "") async throws -> [String] {
        try await ask(.get, "/v1/cache\(query)").json["items"]?.array?
            .compactMap { $0["url"]?.string?.replacing("http://api.test", with: "") } ?? []
    }
}

/// A sequence of buffers.
private struct Feed: AsyncSequence, Sendable {
    let buffers: [ByteBuffer]

    init(_ buffers: [ByteBuffer]) { self.buffers = buffers }

    struct AsyncIterator: AsyncIteratorProtocol {
        var rest: ArraySlice<ByteBuffer>
        mutating func next() async -> ByteBuffer? { rest.popFirst() }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rest: buffers[...]) }
}

/// Collects a body that is written in pieces.
private final class Gathered: ResponseBodyWriter {
    private let bytes = Mutex(ByteBuffer())

    var text: String { String(buffer: bytes.withLock { $0 }) }

    func write(_ buffer: ByteBuffer) async throws { _ = bytes.withLock { $0.writeImmutableBuffer(buffer) } }
    func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
