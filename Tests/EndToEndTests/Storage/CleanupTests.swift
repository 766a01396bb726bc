// `rockpool storage-cleanup` with a running server and without one (docs/reference/cli.md#storage-cleanup; docs/storage.md#cleanup).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct CleanupTests {
    /// Runs `body` with two stored notes, two stored assets and two pending writes; the server is stopped unless `isRunning`.
    private func with(isRunning: Bool, _ body: (World) async throws -> Void) async throws {
        try await World.with { world in
            for path in ["/v1/notes/1", "/v1/notes/2", "/v1/assets/100000", "/v1/assets/200000"] {
                try await #expect(world.send("GET", path).status == 200)
            }
            await world.goOffline()
            for n in 1...2 { _ = try await world.queued("PATCH", "/v1/notes/\(n)", body: #"{"title":"kept"}"#) }
            if !isRunning { try await world.server.stop() }
            try await body(world)
            if !isRunning { try await world.server.start() }
            try await #expect(world.server.operations("pending,inflight").count == 2)
        }
    }

    private func clean(_ world: World, _ options: String...) async throws -> JSONValue {
        let run = try await Command.rockpool(
            ["storage-cleanup", "--format", "json", "--config", world.server.configurationFile] + options)
        #expect(run.status == 0, "\(run.errors)")
        return try JSONValue.parse(Array(run.output.utf8))
    }

    @Test(arguments: [true, false]) func aDryRunIsTheRealRunWithoutItsEffect(_ isRunning: Bool) async throws {
        try await with(isRunning: isRunning) { world in
            // The API is away, or nobody knows: what one lives on stays unless that is asked for.
            let held = try await clean(world, "--aggressive")
            #expect(held["removed"]?["entries"]?.integer == 0 && held["held"]?.object?.names.count == 1, "\(held)")
            let dry = try await clean(world, "--aggressive", "--yes", "--dry-run")
            #expect(dry["dryRun"]?.bool == true && dry["aggressive"]?.bool == true)
            let again = try await clean(world, "--aggressive", "--yes", "--dry-run")
            #expect(dry["removed"] == again["removed"] && dry["operations"] == again["operations"])
            let real = try await clean(world, "--aggressive", "--yes")
            #expect(real["removed"] == dry["removed"] && real["operations"] == dry["operations"] && real["orphans"] == dry["orphans"])
            #expect(real["removed"]?["byCategory"]?["assets"]?["entries"]?.integer == 2)
            #expect((real["removed"]?["bytes"]?.integer ?? 0) >= 300_000)
            #expect(real["operations"]?["purged"]?.integer == 0 && real["operations"]?["kept"]?.integer == 2)
            let (before, after) = (real["files"]?["cacheBefore"]?.integer ?? 0, real["files"]?["cacheAfter"]?.integer ?? 0)
            #expect(after < before)
            // What the dry run foresees is what the real run leaves, but for the layout of the pages, and for the log of a running server.
            let tolerance = isRunning ? 512 * 1024 : 96 * 1024
            let (dryBefore, foreseen) = (dry["files"]?["cacheBefore"]?.integer ?? 0, dry["files"]?["cacheAfter"]?.integer ?? 0)
            #expect(abs(foreseen - after) <= tolerance && foreseen < dryBefore - 250_000, "\(foreseen), \(after) of \(before)")
            let (data, left) = (dry["files"]?["dataAfter"]?.integer ?? 0, real["files"]?["dataAfter"]?.integer ?? 0)
            #expect(abs(data - left) <= tolerance, "\(data), \(left)")
            try await #expect(clean(world, "--aggressive", "--yes", "--dry-run")["removed"]?["entries"]?.integer == 0)
        }
    }

    @Test func whatIsFreshAndUsedStays() async throws {
        try await with(isRunning: true) { world in
            try await #expect(clean(world)["removed"]?["entries"]?.integer == 0)
            try await #expect(world.send("GET", "/v1/assets/100000").status == 200)
            let assets = try await clean(world, "--aggressive", "--yes", "--category", "assets")
            #expect(assets["removed"]?["byCategory"]?.object?.names == ["assets"])
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            expectProblem(try await world.send("GET", "/v1/assets/100000"), "offline-miss", 504)
        }
    }

    @Test(arguments: [true, false]) func vacuumGivesRoomBack(_ isRunning: Bool) async throws {
        try await with(isRunning: isRunning) { world in
            _ = try await clean(world, "--aggressive")
            let report = try await clean(world, "--vacuum")
            #expect(report["vacuum"]?["ran"]?.bool == true, "\(report["vacuum"]?["why"]?.string ?? "")")
            let (before, after) = (report["vacuum"]?["pagesBefore"]?.integer, report["vacuum"]?["pagesAfter"]?.integer)
            #expect(try #require(after) <= #require(before))
        }
    }

    @Test(arguments: [true, false]) func theReportHasItsShape(_ isRunning: Bool) async throws {
        try await with(isRunning: isRunning) { world in
            let report = try await clean(world)
            let names = ["dryRun", "aggressive", "startedAt", "seconds", "removed", "operations", "orphans", "files", "vacuum", "errors"]
            #expect(missing(names, in: report).isEmpty)
            #expect(missing(["entries", "bytes", "byCategory", "byReason"], in: report["removed"]).isEmpty)
            #expect(missing(["purged", "kept"], in: report["operations"]).isEmpty)
            #expect(missing(["cacheBefore", "cacheAfter", "dataBefore", "dataAfter"], in: report["files"]).isEmpty)
            #expect(missing(["ran", "why", "pagesBefore", "pagesAfter"], in: report["vacuum"]).isEmpty)
            #expect(report["errors"]?.array?.isEmpty == true && report["seconds"]?.number != nil)
            #expect(report["startedAt"]?.string.flatMap { RFC3339.parse($0) } != nil)
        }
    }

    @Test func beforeTheFirstStartNothingIsMade() async throws {
        let server = try ServerProcess.prepare(ServerSettings())
        let run = try await server.command("storage-cleanup", "--format", "json")
        let report = try JSONValue.parse(Array(run.output.utf8))
        #expect(run.status == 0 && report["dryRun"]?.bool == false, "\(run.output) \(run.errors)")
        #expect(Files.names(in: server.stateDirectory, startingWith: "data").isEmpty)
    }

    @Test func badUsageIsSaid() async throws {
        let server = try ServerProcess.prepare(ServerSettings())
        try await #expect(server.command("storage-cleanup", "--category", "nonsense").status == 64)
        try await #expect(server.command("storage-cleanup", "--older-than", "soon").status == 64)
    }
}
