// Malformed responses: their effects on the server, and on the exchanges of other clients (RFC 9112 §2.2, §5.2, §6.3, §9.3).
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized) struct UpstreamAttackTests {
    /// libcurl 7.88 appends a folded line at the start of a head to a field of the previous response, which has been freed.
    @Test(arguments: AttackedServer.policies) func aHeadThatBeginsWithAFoldEndsNothing(_ policy: String) async throws {
        try await AttackedServer.with(policy: policy) { attacked in
            for round in 0..<20 {
                let good = try await attacked.send(Attack.get("/good\(round)", answer: .body("good", "X-Kind: good")))
                #expect(good.text == "good")
                let fold = "HTTP/1.1 200 OK\r\n \(String(repeating: "x", count: round * 50)): y\r\nContent-Length: 5\r\n\r\nhello"
                let bad = try await attacked.send(Attack.get("/fold\(round)", answer: .message(fold, closes: true)))
                #expect(bad.status == 502 || bad.status == 504, "\(bad.status)")
                #expect(attacked.server.isRunning)
            }
        }
    }

    /// The connection is kept, and a response is received on it before the next request has been sent.
    @Test(arguments: AttackedServer.policies) func whatComesBetweenTwoRequestsAnswersNeither(_ policy: String) async throws {
        let taken = Mutex(0)
        let spoken = Mutex(0)
        let origin = try await RawServer.start { connection in
            while true {
                let head = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                guard head.hasPrefix("GET /") else {
                    try await connection.send("HTTP/1.1 204 No Content\r\n\r\n")
                    continue
                }
                try await connection.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\ngood")
                // Wait until the client has the response: libcurl itself drops bytes that arrive together with it.
                let round = spoken.withLock { $0 } + 1
                try await eventually("the reply at its client") { taken.withLock { $0 } >= round }
                try await connection.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 6\r\n\r\nPOISON")
                spoken.withLock { $0 += 1 }
            }
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port, ["policy": .string(policy)]))
        for round in 1...5 {
            let reply = try await Curl.send("GET", "http://\(server.gateway)/\(round)")
            #expect(reply.text == "good", "round \(round): \(reply.text)")
            taken.withLock { $0 += 1 }
            try await eventually("bytes nobody asked for") { spoken.withLock { $0 } >= round }
        }
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }
}
