// Registries on a route with `kind: oci`: what was pulled is there while they are away, for those whom they let in.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3))) struct RegistryTests {
    private static let routes: JSONValue = ["routes": [["match": "/**", "kind": "oci"]]]

    private func with(_ registry: PlayedRegistry, others: [JSONValue] = [], _ body: (PlayedWorld) async throws -> Void) async throws {
        try await PlayedWorld.with(upstream: Self.routes, others: others, { registry.answer($0) }, body)
    }

    private func blobs(_ world: PlayedWorld, _ method: String = "GET") -> Int {
        world.site.asked.count { $0.path.contains("/blobs/") && $0.method == method }
    }

    @Test func whatWasPulledIsThereForThoseWhoWereLetIn() async throws {
        let registry = PlayedRegistry()
        try await with(registry) { world in
            for user in ["ada", "ada", "eve"] {
                let (status, layer) = try await RegistryPull(world, user).pull(registry)
                #expect(status == 200 && layer == registry.layer, "\(user): \(status)")
                try await world.stored("/v2/pool/app/blobs/" + registry.layerDigest)
            }
            #expect(blobs(world) == 1, "content is fetched once")
            let manifests = world.site.asked.count { $0.path.contains("/manifests/") && $0.method == "GET" }
            #expect(manifests == 1)
            try await #expect(RegistryPull(world, "bob").pull(registry).0 == 401)
            try await #expect(RegistryPull(world, nil).pull(registry).0 == 401)
            try await #expect(world.get("/v2/pool/app/manifests/latest").status == 401)
            let last = try await RegistryPull(world, "ada").token()

            try await world.turn("offline")
            let before = world.site.asked.count
            for user in ["ada", "eve"] {
                let (status, layer) = try await RegistryPull(world, user).pull(registry)
                #expect(status == 200 && layer == registry.layer, "\(user): \(status)")
            }
            let (ada, eve) = (try await RegistryPull(world, "ada").token(), try await RegistryPull(world, "eve").token("pool/open"))
            #expect(ada?.contains("secret") == false)
            for token in [eve ?? "", (ada ?? "") + "0", "secret-ada-9", "", last ?? ""] {
                let (status, text) = try await RegistryPull(world, "ada").pull(registry, token: token)
                #expect(status == 401 || status == 504, "\(token): \(status) \(text)")
            }
            for user in ["bob", nil] {
                let (status, text) = try await RegistryPull(world, user).pull(registry)
                #expect(status == 401 || status == 504, "\(user ?? "nobody"): \(status) \(text)")
            }
            let stranger = try await RegistryPull(world, "zoe").askForToken()
            #expect(stranger?.status == 504 && stranger?.text.contains("gave this client no token") == true, "\(stranger?.text ?? "")")
            try await #expect(world.get("/v2/pool/app/blobs/" + registry.layerDigest).status == 401)
            let head = try await world.send(
                "HEAD", "/v2/pool/app/blobs/" + registry.layerDigest, fields: ["Authorization: Bearer \(ada ?? "")"])
            #expect(head.status == 200 && head["content-length"] == "\(registry.layer.utf8.count)")
            let tag = try await world.get("/v2/pool/app/manifests/latest", ["Authorization: Bearer \(ada ?? "")"])
            #expect(tag["cache-status"]?.contains("detail=offline") == true, "\(tag["cache-status"] ?? "")")
            #expect(world.site.asked.count == before)
            try await expectNoSecrets(in: world)

            try await world.turn("auto")
            // A token of Rockpool opens what is stored or makes its client ask for another one; its registry never sees it.
            let blob = try await world.get("/v2/pool/app/blobs/" + registry.layerDigest, ["Authorization: Bearer \(ada ?? "")"])
            #expect(blob.status == 200 || blob.status == 401 && blob["www-authenticate"]?.contains("Bearer") == true)
            try await #expect(world.get("/v2/pool/open/manifests/latest", ["Authorization: Bearer \(ada ?? "")"]).status == 401)
            // What changes is the registry's to tell, as soon as it is back.
            for place in ["manifests/latest", "tags/list", "blobs/" + PlayedRegistry.digest(of: "unseen")] {
                try await eventually(place) {
                    let said = try await world.get("/v2/pool/app/" + place, ["Authorization: Bearer \(ada ?? "")"])
                    return said.status == 401 && said["www-authenticate"]?.contains("Bearer") == true
                }
            }
            #expect(!world.site.asked.contains { $0["authorization"]?.contains("rockpool") == true })
        }
    }

    /// Neither a token nor a password is written anywhere.
    private func expectNoSecrets(in world: PlayedWorld) async throws {
        let directory = world.server.cacheDirectory
        for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
            guard let bytes = try? Files.bytes(of: directory + "/" + name) else { continue }
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(!text.contains("secret-") && !text.contains("word-of"), "\(name)")
        }
    }

    @Test func aPushIsRefusedAtOnce() async throws {
        let registry = PlayedRegistry()
        try await with(registry) { world in
            let token = ["Authorization: Bearer \(try await RegistryPull(world, "ada").token() ?? "")"]
            try await #expect(world.send("POST", "/v2/pool/app/blobs/uploads/", fields: token).status == 202)
            try await world.turn("offline")
            let writes = [
                ("POST", "/v2/pool/app/blobs/uploads/"), ("PATCH", "/v2/pool/app/blobs/uploads/1"),
                ("PUT", "/v2/pool/app/manifests/latest"),
                ("DELETE", "/v2/pool/app/manifests/" + registry.manifestDigest),
            ]
            for (method, path) in writes {
                let refused = try await world.send(method, path, fields: token + ["Content-Type: application/octet-stream"], body: "{}")
                #expect(refused.status == 503 && refused.text.contains("not-queueable"), "\(method): \(refused.status)")
                let message = refused.json?["errors"]?.array?.first?["message"]?.string
                #expect(message?.contains("nothing was pushed") == true, "\(refused.text)")
            }
            try await #expect(world.server.operations().isEmpty)
        }
    }

    @Test func contentThatIsNotWhatItsDigestSaysIsNotKept() async throws {
        let registry = PlayedRegistry()
        let play: PlayedSite.Play = { asked in
            var said = registry.answer(asked)
            if asked.path.contains("/blobs/"), said.status == 200 { said.body = Array("something else".utf8) }
            return said
        }
        try await PlayedWorld.with(upstream: Self.routes, play) { world in
            _ = try await RegistryPull(world, "ada").pull(registry)
            _ = try await RegistryPull(world, "ada").pull(registry)
            #expect(blobs(world) == 2, "it is asked for again")
            try await world.turn("offline")
            try await #expect(RegistryPull(world, "ada").pull(registry).0 == 504)
        }
    }

    /// A digest does not prove a range.
    @Test func aRangeOfWhatIsNotStoredIsPassedOn() async throws {
        let registry = PlayedRegistry()
        let play: PlayedSite.Play = { asked in
            let said = registry.answer(asked)
            guard asked.path.contains("/blobs/"), asked["range"] != nil, said.status == 200 else { return said }
            let range = "Content-Range: bytes 0-9/\(registry.layer.utf8.count)"
            return .text("0123456789", status: 206, range, "ETag: \"1\"", "Cache-Control: max-age=600")
        }
        try await PlayedWorld.with(upstream: Self.routes, play) { world in
            let token = "Authorization: Bearer \(try await RegistryPull(world, "ada").token() ?? "")"
            for _ in 0..<3 {
                let part = try await world.get("/v2/pool/app/blobs/" + registry.layerDigest, [token, "Range: bytes=0-9"])
                // What is served from the store is of the whole, which is proved.
                let isHit = part["cache-status"]?.contains("; hit") == true
                #expect(part.status == 206 && part.text == (isHit ? "low water " : "0123456789"), "\(part)")
            }
        }
    }

    @Test func pullsAtOnceFetchEachBlobOnce() async throws {
        let registry = PlayedRegistry(layer: String(repeating: "high water ", count: 400_000))
        try await with(registry) { world in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for user in ["ada", "eve", "ada", "eve", "ada", "eve"] {
                    group.addTask {
                        let (status, layer) = try await RegistryPull(world, user).pull(registry)
                        #expect(status == 200 && layer == registry.layer)
                    }
                }
                try await group.waitForAll()
            }
            #expect(blobs(world) == 1)
        }
    }

    @Test func aClientThatIsNoLongerLetInIsNotServedAway() async throws {
        let registry = PlayedRegistry()
        try await with(registry) { world in
            for user in ["ada", "eve"] { try await #expect(RegistryPull(world, user).pull(registry).0 == 200) }
            registry.refuse("eve")
            try await #expect(RegistryPull(world, "eve").pull(registry).0 == 401)
            try await world.turn("offline")
            try await #expect(RegistryPull(world, "eve").pull(registry).0 == 504)
            try await #expect(RegistryPull(world, "ada").pull(registry).0 == 200)
        }
    }

    /// Most registries keep their blobs at another host, under URLs that are good for some minutes.
    @Test func blobsAtAnotherHostAreFetchedOnce() async throws {
        let content = PlayedRegistry()
        let store = try await PlayedSite.start { asked in
            asked.path.hasPrefix("/blob?Signature=") ? .text(content.layer, "ETag: \"1\"") : .text("", status: 403)
        }
        let registry = PlayedRegistry(elsewhere: "http://127.0.0.1:\(store.port)")
        let other: JSONValue = ["name": "blobs", "origin": .string("http://127.0.0.1:\(store.port)")]
        try await with(registry, others: [other]) { world in
            for user in ["ada", "eve"] {
                let (status, layer) = try await RegistryPull(world, user).pull(registry)
                #expect(status == 200 && layer == registry.layer, "\(status)")
                try await world.stored("/v2/pool/app/blobs/" + registry.layerDigest)
            }
            #expect(store.asked.count == 1 && store.asked.allSatisfy { $0["authorization"] == nil })
            try await world.turn("offline")
            try await #expect(RegistryPull(world, "eve").pull(registry).1 == registry.layer)
        }
        await store.stop()
    }
}
