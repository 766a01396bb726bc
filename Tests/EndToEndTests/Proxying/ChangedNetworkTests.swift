// After a change of network kept connections are dead, and new ones work (docs/reference/behaviour.md#reachability).
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct ChangedNetworkTests {
    /// The connections of an origin: from some moment on, those from before are silent.
    private final class Network: Sendable {
        private let state = Mutex((count: 0, lost: 0))

        /// Returns the number of a new connection.
        func connect() -> Int {
            state.withLock { state in
                state.count += 1
                return state.count
            }
        }

        func change() { state.withLock { $0.lost = $0.count } }
        func isLost(_ number: Int) -> Bool { state.withLock { number <= $0.lost } }
    }

    /// One request meets a dead connection and fails; the others go out on new ones. Relayed or not, the upstream stays online.
    @Test(arguments: [true, false]) func oneSilentConnectionVoidsTheOthers(isRelayed: Bool) async throws {
        let network = Network()
        let origin = try await RawServer.start { connection in
            let number = network.connect()
            while true {
                _ = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                // Long enough for several requests to need connections of their own.
                try await Task.sleep(for: .milliseconds(network.isLost(number) ? 60_000 : 100))
                try await connection.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port, ["timeouts": ["first_byte": "1s"]]))
        // Requests of a kind that is not relayed differ in this field.
        let fields = isRelayed ? [] : ["Cache-Control: max-age=600"]
        func get() async throws -> Int {
            try await Curl.send("GET", "http://\(server.gateway)/v1/a", fields: fields).status
        }
        for _ in 0..<4 {
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<6 { group.addTask { try await get() } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses == Array(repeating: 200, count: 6))
        }
        network.change()
        var statuses: [Int] = []
        for _ in 0..<8 { statuses.append(try await get()) }
        #expect(statuses.count { $0 != 200 } <= (isRelayed ? 2 : 1), "\(statuses)")
        #expect(Array(statuses.suffix(5)) == Array(repeating: 200, count: 5), "\(statuses)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }
}
