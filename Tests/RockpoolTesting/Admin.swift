// Calls of a server's admin API (docs/reference/admin-api.md).
package import RockpoolCore

extension ServerProcess {
    /// Sends a GET request to the admin API, without a token.
    package func get(_ path: String, fields: [String] = []) async throws -> Curl {
        try await Curl.send("GET", "http://\(admin)\(path)", fields: fields)
    }

    /// Sends a change to the admin API, with the token of `state_dir/admin-token`.
    package func change(_ method: String = "POST", _ path: String, _ body: JSONValue? = nil) async throws -> Curl {
        let text = body.map { String(decoding: $0.serialized(), as: UTF8.self) }
        let type = text.map { _ in "Content-Type: application/json" }
        let fields = ["Authorization: Bearer \(try token)"] + [type].compactMap(\.self)
        return try await Curl.send(method, "http://\(admin)\(path)", fields: fields, body: text)
    }

    /// The admin token.
    package var token: String {
        get throws { try Files.text(of: stateDirectory + "/admin-token").filter { !$0.isWhitespace } }
    }

    /// Returns the operations in the given states: a comma-separated list, or `all`.
    package func operations(_ states: String = "all") async throws -> [JSONValue] {
        try await get("/v1/operations?limit=1000&state=\(states)").json?["items"]?.array ?? []
    }

    /// Waits until no operation is open.
    package func outboxIsEmpty(within limit: Duration = .seconds(20)) async throws {
        try await eventually("an empty outbox", within: limit) {
            try await operations("pending,inflight,uncertain,conflicted,parked,dead").isEmpty
        }
    }

    /// Waits until an operation has reached a state, and returns the operation.
    package func operation(_ id: String, reaching state: String, within limit: Duration = .seconds(20)) async throws -> JSONValue {
        try await eventualValue("\(state) operation \(id)", within: limit) {
            let operation = try await get("/v1/operations/\(id)").json
            return operation?["state"]?.string == state ? operation : nil
        }
    }
}
