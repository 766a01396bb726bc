// The admin API as used by scripts and dashboards (docs/reference/admin-api.md).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct AdminTests {
    /// Returns the member names of an object, sorted.
    private func names(_ value: JSONValue?) -> [String] { value?.object?.names.sorted() ?? [] }

    @Test func healthNeedsNoToken() async throws {
        try await World.with { world in
            try await #expect((200..<300).contains(world.server.get("/healthz").status))
            try await #expect((200..<300).contains(world.server.get("/readyz").status))
        }
    }

    @Test func statusFollowsTheUpstreamAndTheOutbox() async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/notes/1")
            let online = try #require(try await world.server.get("/v1/status").json)
            #expect(online["state"]?.string == "synced" && online["pending"]?.integer == 0 && online["conflicts"]?.integer == 0)
            #expect(online["failed"]?.integer == 0)
            let upstream = try #require(online["upstreams"]?.array?.first)
            #expect(upstream["name"]?.string == "notes" && upstream["reachability"]?.string == "online")
            #expect(upstream["origin"]?.string == "http://127.0.0.1:\(world.api.port)")
            #expect(names(upstream) == ["bandwidth", "lastError", "mode", "name", "origin", "reachability", "since"])
            await world.goOffline()
            _ = try await world.queued("POST", "/v1/notes", body: "{}")
            let offline = try #require(try await world.server.get("/v1/status").json)
            #expect(offline["state"]?.string == "offline" && offline["pending"]?.integer == 1)
            #expect(offline["upstreams"]?.array?.first?["reachability"]?.string == "offline")
            #expect(offline["upstreams"]?.array?.first?["since"]?.string.flatMap { RFC3339.parse($0) } != nil)
            #expect(offline["upstreams"]?.array?.first?["lastError"]?.string?.isEmpty == false)
            try await world.api.restart()
            try await eventually("synced") { try await world.server.get("/v1/status").json?["state"]?.string == "synced" }
        }
    }

    @Test func statsCount() async throws {
        try await World.with { world in
            for _ in 0..<2 { _ = try await world.send("GET", "/v1/assets/1000") }
            for _ in 0..<2 { _ = try await world.send("GET", "/v1/notes/1") }
            await world.goOffline()
            _ = try await world.send("GET", "/v1/notes/1")
            _ = try await world.queued("POST", "/v1/notes", body: "{}")
            let stats = try #require(try await world.server.get("/v1/stats").json)
            #expect(missing(["cache", "outbox", "sync", "storage", "requests", "uptimeSeconds"], in: stats).isEmpty)
            let cache = stats["cache"]
            let cacheNames = [
                "hits", "misses", "stale", "revalidated", "hitRatio", "entries", "bytes", "limitBytes", "memoryBytes", "evictions",
                "byCategory",
            ]
            #expect(missing(cacheNames, in: cache).isEmpty)
            #expect(cache?["hits"]?.integer == 2 && cache?["misses"]?.integer == 2 && cache?["stale"]?.integer == 1)
            #expect(cache?["revalidated"]?.integer == 1 && cache?["entries"]?.integer == 2)
            #expect(cache?["limitBytes"]?.integer == 500_000_000 && (cache?["bytes"]?.integer ?? 0) > 0)
            let outboxNames = ["pending", "inflight", "uncertain", "conflicted", "parked", "dead", "delivered", "oldestPendingSeconds"]
            #expect(missing(outboxNames, in: stats["outbox"]).isEmpty && stats["outbox"]?["pending"]?.integer == 1)
            let storageNames = ["cacheBytes", "cacheLimitBytes", "dataBytes", "dataLimitBytes", "freeDiskBytes", "reclaimableBytes"]
            #expect(missing(storageNames, in: stats["storage"]).isEmpty)
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            try await #expect(world.server.get("/v1/stats").json?["outbox"]?["delivered"]?.integer == 1)
        }
    }

    @Test func storageAgreesWithDu() async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/assets/500000")
            let storage = try #require(try await world.server.get("/v1/storage").json)
            let expected = ["cache", "data", "disk", "lastCleanup", "pinned", "reclaimableBytes"]
            #expect(missing(expected, in: storage).isEmpty)
            #expect(missing(["bytes", "limitBytes", "reservedBytes", "byCategory"], in: storage["cache"]).isEmpty)
            #expect(missing(["bytes", "limitBytes"], in: storage["data"]).isEmpty)
            #expect(missing(["freeBytes", "minFreeBytes"], in: storage["disk"]).isEmpty)
            for (name, directory) in [("cache", world.server.cacheDirectory), ("data", world.server.stateDirectory)] {
                let said = try #require(storage[name]?["bytes"]?.integer)
                let onDisk = Files.allocatedBytes(of: directory)
                #expect(abs(said - onDisk) <= onDisk / 10 + 73_728, "\(name): reported \(said), du \(onDisk)")
            }
            let report = try await world.server.change("POST", "/v1/storage/cleanup", ["aggressive": true, "dryRun": true])
            #expect(report.status == 200 && report.json?["dryRun"]?.bool == true && report.json?["removed"]?["entries"]?.integer == 1)
            try await #expect(
                world.server.change("POST", "/v1/storage/cleanup", ["aggressive": true]).json?["removed"]?["entries"]?.integer == 1)
            try await #expect(world.server.get("/v1/storage").json?["lastCleanup"]?.string != nil)
        }
    }

    static let operationNames = [
        "id", "state", "reason", "method", "url", "upstream", "entity", "lane", "idempotencyKey", "attempts", "acceptedAt", "nextAttemptAt",
        "lastError", "priority", "dependsOn", "localId", "serverId", "result",
    ]

    @Test func operationsAreListedAndSteered() async throws {
        try await World.with { world in
            await world.goOffline()
            var ids: [String] = []
            for n in 1...3 { ids.append(try await world.queued("PATCH", "/v1/notes/1", body: #"{"count":\#(n)}"#)) }
            let list = try #require(try await world.server.get("/v1/operations").json)
            #expect(list["items"]?.array?.compactMap { $0["id"]?.string } == ids && list["next"]?.isNull == true)
            let first = try #require(list["items"]?.array?.first)
            #expect(missing(Self.operationNames, in: first).isEmpty)
            #expect(first["entity"]?.string == "/v1/notes/1" && first["priority"]?.integer == 0)
            #expect(first["acceptedAt"]?.string.flatMap { RFC3339.parse($0) } != nil)
            let page = try #require(try await world.server.get("/v1/operations?limit=2").json)
            let cursor = try #require(page["next"]?.string)
            let rest = try await world.server.get("/v1/operations?limit=2&cursor=\(cursor)").json
            #expect((page["items"]?.array ?? []) + (rest?["items"]?.array ?? []) == list["items"]?.array)
            #expect(rest?["next"]?.isNull == true)

            try await #expect(world.server.get("/v1/operations/\(ids[0])").json?["id"]?.string == ids[0])
            try await #expect(world.server.get("/v1/operations/none").status == 404)
            try await #expect(world.server.change("DELETE", "/v1/operations/\(ids[0])").status == 204)
            let discarded = try await world.server.get("/v1/operations/\(ids[0])").json
            #expect(discarded?["state"]?.string == "cancelled" && discarded?["reason"]?.string == "discarded")
            expectProblem(try await world.server.change("POST", "/v1/operations/\(ids[0])/retry"), "conflict", 409)
            let retried = try await world.server.change("POST", "/v1/operations/\(ids[1])/retry")
            #expect(retried.status == 200 && retried.json?["id"]?.string == ids[1])
            try await #expect(world.server.operations("pending,inflight").count == 2)
            try await #expect(world.server.operations("cancelled").count == 1)
            try await #expect((400...422).contains(world.server.get("/v1/operations?state=nonsense").status))
            try await world.api.restart()
            try await #expect(world.server.change("POST", "/v1/operations/flush").status == 200)
            try await world.server.outboxIsEmpty()
            #expect(
                world.api.log().filter(\.hasEffect).map { String(decoding: $0.body, as: UTF8.self) } == [#"{"count":2}"#, #"{"count":3}"#])
        }
    }

    @Test func theNetworkSwitch() async throws {
        try await World.with { world in
            let shown = try #require(try await world.server.get("/v1/network").json)
            #expect(names(shown) == ["mode", "untrusting", "upstreams"] && shown["mode"]?.string == "auto")
            let upstreamNames = ["name", "mode", "reachability", "since", "bandwidth"]
            let upstream = try #require(shown["upstreams"]?.array?.first)
            #expect(missing(upstreamNames, in: upstream).isEmpty)
            let changed = try await world.server.change("PUT", "/v1/network", ["mode": "offline", "upstream": "notes"])
            #expect(changed.status == 200 && changed.json?["upstreams"]?.array?.first?["mode"]?.string == "offline")
            expectProblem(try await world.send("GET", "/v1/notes/1"), "offline-miss", 504)
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "auto", "upstream": "notes"]).status == 200)
            try await eventually("a read") { try await world.send("GET", "/v1/notes/1").status == 200 }
            try await #expect((400...422).contains(world.server.change("PUT", "/v1/network", ["mode": "sometimes"]).status))
            try await #expect((404...422).contains(world.server.change("PUT", "/v1/network", ["mode": "auto", "upstream": "none"]).status))
        }
    }

    static let changes = [
        ("POST", "/v1/storage/cleanup"), ("POST", "/v1/operations/x/retry"), ("DELETE", "/v1/operations/x"),
        ("POST", "/v1/operations/flush"),
        ("PUT", "/v1/network"),
    ]

    @Test(arguments: changes) func changesNeedTheToken(_ method: String, _ path: String) async throws {
        let server = try await ServerProcess.start(ServerSettings())
        for fields in [[], ["Authorization: Bearer wrong"], ["Authorization: Bearer "], ["Authorization: Basic \(try server.token)"]] {
            expectProblem(try await Curl.send(method, "http://\(server.admin)\(path)", fields: fields, body: "{}"), "unauthorized", 401)
        }
        try await #expect(server.change(method, path, [:]).status != 401)
        try await #expect(server.stop() == .exit(0))
    }

    @Test func otherSitesAreRefused() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        try await #expect((400..<500).contains(server.get("/v1/status", fields: ["Host: evil.example"]).status))
        try await #expect((400..<500).contains(server.get("/v1/status", fields: ["Origin: http://evil.example"]).status))
        let change = try await Curl.send(
            "PUT", "http://\(server.admin)/v1/network",
            fields: ["Origin: http://evil.example", "Authorization: Bearer \(try server.token)"],
            body: #"{"mode":"offline"}"#)
        #expect((400..<500).contains(change.status))
        try await #expect(server.get("/v1/network").json?["mode"]?.string == "auto")
        try await #expect(server.get("/v1/status", fields: ["Origin: http://\(server.admin)"]).status == 200)
        try await #expect(
            server.get("/v1/status", fields: ["Host: localhost:\(server.admin.split(separator: ":").last ?? "")"]).status == 200)
        try await #expect(server.stop() == .exit(0))
    }
}
