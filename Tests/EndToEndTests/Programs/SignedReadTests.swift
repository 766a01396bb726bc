// Each request of S3 has a signature of its own: its key is the identity (docs/caching.md#partitions).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(2))) struct SignedReadTests {
    private func signed(_ key: String, _ signature: String) -> [String] {
        [
            "Authorization: AWS4-HMAC-SHA256 Credential=\(key)/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, "
                + "Signature=\(signature)", "X-Amz-Date: 20991231T000000Z",
        ]
    }

    @Test func whatAKeyHasReadIsThereOfflineForThatKeyOnly() async throws {
        try await PlayedWorld.with({ asked in .text(asked["authorization"] ?? "", "ETag: \"1\"", "Cache-Control: max-age=60") }) { world in
            try await #expect(world.get("/bucket/key", signed("AKIA1", "a1")).status == 200)
            try await world.stored("/bucket/key")
            // A signature is judged by the upstream as long as it can be asked.
            try await #expect(world.get("/bucket/key", signed("AKIA1", "a2")).status == 200)
            #expect(world.site.count("/bucket/key") == 2)
            try await world.turn("offline")
            try await #expect(world.get("/bucket/key", signed("AKIA1", "a3")).status == 200)
            try await #expect(world.get("/bucket/key", signed("AKIA2", "a3")).status == 504)
            try await #expect(world.get("/bucket/key").status == 504)
        }
    }

    @Test func aQueuedWriteKeepsItsOwnSignature() async throws {
        try await PlayedWorld.with({ _ in .text("") }) { world in
            try await world.turn("offline")
            for (path, signature) in [("/b/one", "s1"), ("/b/two", "s2")] {
                try await #expect(world.send("PUT", path, fields: signed("AKIA1", signature), body: "x").status == 202)
            }
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            for (path, signature) in [("/b/one", "s1"), ("/b/two", "s2")] {
                let sent = try #require(world.site.asked.last { $0.path == path })
                #expect(sent["authorization"]?.hasSuffix("Signature=\(signature)") == true, "\(sent["authorization"] ?? "none")")
            }
        }
    }

    /// Past the time for which a signature is accepted, the write is not sent.
    @Test func anExpiredSignatureIsNotSent() async throws {
        try await PlayedWorld.with({ _ in .text("") }) { world in
            try await world.turn("offline")
            let fields = signed("AKIA1", "s1").map { $0.replacing("20991231", with: "20130524") }
            try await #expect(world.send("PUT", "/b/one", fields: fields, body: "x").status == 202)
            try await world.turn("auto")
            try await eventually("the write is dead") { try await world.server.operations().first?["state"]?.string == "dead" }
            #expect(world.site.count("/b/one") == 0)
        }
    }
}
