// A client with one persistent connection, so that thousands of requests take only seconds (RFC 9112 §9.3).
import RockpoolCore
import RockpoolTesting

/// A connection to a gateway, an admin API or an origin, with one request after another.
struct Wire: Sendable {
    /// The response to a request.
    struct Answer: Sendable {
        let head: MessageHead
        let text: String
        var status: Int { head.status }
        var json: JSONValue? { try? JSONValue.parse(Array(text.utf8)) }
    }

    private let connection: RawConnection
    private let fields: [String]

    /// - Parameters:
    ///   - address: `host:port`.
    ///   - fields: whole lines that are sent with every request.
    static func open(_ address: String, fields: [String] = []) async throws -> Wire {
        Wire(connection: try await RawConnection.open(address), fields: ["Host: " + address] + fields)
    }

    func send(_ method: String, _ path: String, _ body: JSONValue? = nil, fields: [String] = []) async throws -> Answer {
        let bytes = body?.serialized() ?? []
        var lines = ["\(method) \(path) HTTP/1.1"] + self.fields + fields
        if body != nil { lines += ["Content-Type: application/json", "Content-Length: \(bytes.count)"] }
        do {
            try await connection.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + bytes)
            let answer = try await connection.response()
            return Answer(head: answer.head, text: answer.body)
        } catch {
            throw NeverCame(description: "an answer to \(method) \(path) with \(bytes.count) bytes, \(self.fields[0]): \(error)")
        }
    }

    func close() async { await connection.close() }
}

/// One of several clients of an API: a server process and connections to it.
struct Device: Sendable {
    let server: ServerProcess
    let gateway: Wire
    let admin: Wire

    /// Starts a server in front of a notes API. `resource` holds further members of its one resource.
    static func start(api port: Int, resource: JSONValue, upstream: JSONValue = [:]) async throws -> Device {
        let notes: JSONValue = ["collection": "/v1/notes", "item": "/v1/notes/{id}", "updated_at": "/updatedAt"]
        let members = World.upstream.merging(["resources": .array([notes.merging(resource)])]).merging(upstream)
        return try await Device(server: ServerProcess.start(ServerSettings(upstream: port, members)))
    }

    private init(server: ServerProcess) async throws {
        self.server = server
        gateway = try await Wire.open(server.gateway)
        admin = try await Wire.open(server.admin, fields: ["Authorization: Bearer \(try server.token)"])
    }

    /// Restarts the server and reconnects.
    func restarted(environment: [String: String] = [:]) async throws -> Device {
        await close()
        if server.isRunning { try await server.stop() }
        try await server.start(environment: environment)
        return try await Device(server: server)
    }

    func close() async {
        await gateway.close()
        await admin.close()
    }

    /// Switches the network of the upstream.
    func network(_ mode: String) async throws {
        let answer = try await admin.send("PUT", "/v1/network", ["mode": .string(mode), "upstream": .null])
        guard answer.status == 200 else { throw NeverCame(description: "network \(mode): \(answer.text)") }
    }

    /// Returns every item of a list of the admin API, over all pages.
    func items(_ list: String) async throws -> [JSONValue] {
        var (items, cursor): ([JSONValue], String?) = ([], "")
        while let page = cursor {
            let answer = try await admin.send("GET", "\(list)&limit=1000" + (page.isEmpty ? "" : "&cursor=\(page)"))
            guard answer.status == 200 else { throw NeverCame(description: "\(list): \(answer.status) \(answer.text)") }
            items += answer.json?["items"]?.array ?? []
            cursor = answer.json?["next"]?.string
        }
        return items
    }

    /// Waits until no operation is in flight or still to be examined: those left need a user's decision, or wait behind one that does.
    func settle(within limit: Duration = .seconds(60)) async throws {
        try await eventually("a settled outbox of \(server.gateway)", within: limit, pace: .milliseconds(100)) {
            let outbox = try await admin.send("GET", "/v1/stats").json?["outbox"]
            guard outbox?["inflight"] == 0, outbox?["uncertain"] == 0, outbox?["pending"] == 0 || outbox?["conflicted"] != 0 else {
                return false
            }
            let open = try await items("/v1/operations?state=pending,inflight,uncertain,conflicted")
            let asked = try await items("/v1/conflicts?state=open")
            return open.allSatisfy { $0["state"] == "conflicted" || $0["state"] == "pending" && $0["blockedBy"]?.isNull == false }
                && open.count { $0["state"] == "conflicted" } == asked.count
        }
    }

    /// Returns the last conflict record of an operation in full; nil when there is none.
    func conflict(of operation: String) async throws -> JSONValue? {
        guard let summary = try await items("/v1/conflicts?state=all").first(where: { $0["operation"]?.string == operation }),
            let id = summary["id"]?.string
        else { return nil }
        return try await admin.send("GET", "/v1/conflicts/\(id)").json
    }

    /// Sends a write on its own connection or on `wire`, and expects a 202. Returns the operation's id.
    func queue(
        _ method: String, _ path: String, _ body: JSONValue? = nil, fields: [String] = [], on wire: Wire? = nil
    ) async throws -> String {
        let answer = try await (wire ?? gateway).send(method, path, body, fields: fields)
        guard answer.status == 202, let id = answer.head["rockpool-operation"] else {
            throw NeverCame(description: "a promise for \(method) \(path): \(answer.status) \(answer.text)")
        }
        return id
    }
}
