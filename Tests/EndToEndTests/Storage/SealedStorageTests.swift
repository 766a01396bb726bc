// Clients' secrets on the disk: no credential in a usable form, and no plain private body where sealing is configured.
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct SealedStorageTests {
    /// True if a file of the server's two directories contains the text.
    private func isOnDisk(_ text: String, _ server: ServerProcess) -> Bool {
        [server.cacheDirectory, server.stateDirectory].flatMap(Files.everything).contains { path in
            guard let bytes = try? Files.bytes(of: path) else { return false }
            return Data(bytes).range(of: Data(text.utf8)) != nil
        }
    }

    /// The variant of each credential is selected again, although the credential itself is not stored.
    @Test(arguments: ["Authorization: Bearer PLANTED-SECRET", "Cookie: sid=PLANTED-SECRET", "X-Api-Key: PLANTED-SECRET"])
    func aVariantByACredentialDoesNotHoldIt(_ secret: String) async throws {
        let name = secret.prefix { $0 != ":" }
        try await PlayedWorld.with({ asked in
            .text("for \(asked[name.lowercased()] ?? "nobody")", "Cache-Control: public, max-age=600", "Vary: \(name)", "X-Seen: here")
        }) { world in
            let other = secret.replacing("PLANTED-SECRET", with: "another")
            for _ in 0..<2 {
                for fields in [[secret], [other], []] {
                    let value = fields.first.map { String($0.drop { $0 != " " }.dropFirst()) } ?? "nobody"
                    try await #expect(world.get("/a", fields).text == "for \(value)")
                }
            }
            #expect(world.site.count("/a") == 3, "each variant is stored and selected again")
            try await world.turn("offline")
            try await #expect(world.get("/a", [secret]).text == "for \(secret.drop { $0 != " " }.dropFirst())")
            _ = try await world.server.stop()
            // The credential may occur only in the body, which repeats it here.
            for path in [world.server.cacheDirectory, world.server.stateDirectory].flatMap(Files.everything) {
                guard let bytes = try? Files.bytes(of: path) else { continue }
                let text = String(decoding: bytes, as: UTF8.self).replacing("for \(secret.drop { $0 != " " }.dropFirst())", with: "")
                #expect(!text.contains("PLANTED-SECRET"), "the credential is in \(path)")
            }
        }
    }

    /// A private document is read online and written offline, with a small body and a large one.
    @Test(arguments: ["off", "private"]) func privateBodiesAreSealedWhereThatIsConfigured(_ encrypt: String) async throws {
        let long = "GOUT-LARGE " + String(repeating: "abcdefghij", count: 120_000)
        try await World.with(storage: ["encrypt": .string(encrypt), "memory_limit": "0 MB"]) { world in
            let anna = "Authorization: Bearer \(world.api.issueToken(to: "anna"))"
            try await #expect(world.send("GET", "/v1/me", fields: [anna]).status == 200)
            for (path, body) in [("/v1/notes/1", "GOUT-SMALL"), ("/v1/notes/2", long)] {
                let note = #"{"title":"\#(body)"}"#
                try await #expect(
                    world.send("PUT", path, fields: [anna, "Content-Type: application/json"], body: note).status == 200)
                let read = try await world.send("GET", path, fields: [anna])
                #expect(read.status == 200 && read.text.contains(body))
            }
            await world.goOffline()
            for (path, body) in [("/v1/notes/1", "GOUT-SMALL"), ("/v1/notes/2", long)] {
                let read = try await world.send("GET", path, fields: [anna])
                #expect(read.status == 200 && read.text.contains(body), "offline read, status \(read.status)")
            }
            var ids: [String] = []
            for (path, body) in [("/v1/notes/1", "QUEUED-SMALL"), ("/v1/notes/2", long.replacing("GOUT", with: "QUEUED"))] {
                ids.append(try await world.queued("PUT", path, fields: [anna], body: #"{"title":"\#(body)"}"#))
                let read = try await world.send("GET", path, fields: [anna])
                #expect(read.text.contains(body), "the client reads its own pending write")
            }
            for text in ["GOUT-SMALL", "GOUT-LARGE", "QUEUED-SMALL", "QUEUED-LARGE"] {
                #expect(isOnDisk(text, world.server) == (encrypt == "off"), "\(text)")
            }
            try await world.api.restart()
            for id in ids { _ = try await world.server.operation(id, reaching: "delivered") }
            #expect(world.api.note(id: "2")?.members["title"]?.string?.hasPrefix("QUEUED-LARGE") == true)
            #expect(isOnDisk("QUEUED-SMALL", world.server) == (encrypt == "off"), "a delivered body is not on the disk either")
        }
    }
}
