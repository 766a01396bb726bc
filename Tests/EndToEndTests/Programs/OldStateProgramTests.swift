// Programs that list what they have written, and programs that ask for many parts of a file at once.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct OldStateProgramTests {
    private static func has(_ program: String) -> Bool { FileManager.default.isExecutableFile(atPath: "/usr/bin/" + program) }

    private static let restServer =
        URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path + "/programs/rest_server.py"

    /// restic lists its locks and snapshots, writes them and removes its locks: a listing from before is marked while the server is away.
    @Test(.enabled(if: has("restic"), "restic is not installed")) func resticSeesThatAListingIsOld() async throws {
        let serve = { (port: Int, directory: String) in ["python3", Self.restServer, "\(port)", directory + "/repository"] }
        try await ProgramWorld.with(serve, upstream: [:]) { world in
            let restic = { (arguments: [String]) in
                try await Command.run(
                    "/usr/bin/restic", ["-r", "rest:http://\(world.server.gateway)/", "--no-cache"] + arguments,
                    environment: ["RESTIC_PASSWORD": "a", "HOME": world.scratch.path], directory: world.scratch.path, within: .seconds(90))
            }
            let list = { (name: String) in try await Curl.send("GET", "http://\(world.server.gateway)/\(name)/") }
            try world.write("low water", to: "files/a.txt")
            var run = try await restic(["init"])
            try #require(run.status == 0, "\(run.errors)")
            // Both lists are stored before the backup.
            for name in ["locks", "snapshots"] { try await #expect(list(name).status == 200) }
            run = try await restic(["backup", "files"])
            #expect(run.status == 0, "\(run.errors)")
            try await world.turn("offline")
            // What was listed again since is current; the others say that they are old.
            let (locks, snapshots) = (try await list("locks"), try await list("snapshots"))
            #expect(locks["rockpool-dirty"] == "1" && snapshots["rockpool-dirty"] == "1", "\(locks.text) \(snapshots.text)")
            try await world.turn("auto")
            for name in ["locks", "snapshots"] { try await #expect(list(name)["rockpool-dirty"] == nil) }
            run = try await restic(["snapshots", "--no-lock"])
            #expect(run.output.contains("1 snapshots"), "\(run.output)\(run.errors)")
            try await world.turn("offline")
            try await #expect(list("snapshots")["rockpool-dirty"] == nil)
            run = try await restic(["snapshots", "--no-lock"])
            #expect(run.status == 0 && run.output.contains("1 snapshots"), "\(run.output)\(run.errors)")
        }
    }

    /// zsync fetches what has changed of a file in tens of ranges per request.
    @Test(.enabled(if: has("zsync") && has("zsyncmake"), "zsync is not installed")) func zsyncFetchesManyRangesOfWhatIsStored() async throws
    {
        let serve = { (port: Int, directory: String) in
            ["bash", "-c", "cd \(directory) && mkdir -p site && exec python3 -m http.server \(port) --bind 127.0.0.1 -d site"]
        }
        try await ProgramWorld.with(serve, upstream: [:]) { world in
            let make = """
                import os; new = bytearray(os.urandom(2_000_000)); open("site/file", "wb").write(new)
                for at in range(20_000, 2_000_000, 45_000): new[at:at + 10] = b"0123456789"
                open("old", "wb").write(new)
                """
            var run = try await world.run(["python3", "-c", make])
            try #require(run.status == 0, "\(run.errors)")
            run = try await world.run(["bash", "-c", "cd site && zsyncmake -u http://\(world.server.gateway)/file file"])
            try #require(run.status == 0, "\(run.errors)")
            try await #expect(Curl.send("GET", "http://\(world.server.gateway)/file").body.count == 2_000_000)
            try await #expect(Curl.send("GET", "http://\(world.server.gateway)/file.zsync").status == 200)
            try await world.turn("offline")
            // Twenty ranges at once are twenty parts.
            let ranges = (0..<20).map { "\($0 * 90_000)-\($0 * 90_000 + 2047)" }.joined(separator: ",")
            let parts = try await Curl.send("GET", "http://\(world.server.gateway)/file", fields: ["Range: bytes=\(ranges)"])
            #expect(parts.status == 206 && parts["content-type"]?.hasPrefix("multipart/byteranges") == true)
            #expect(parts.body.count > 20 * 2048 && parts.body.count < 20 * 2048 + 5000)
            run = try await world.run(["zsync", "-i", "old", "-o", "new", "http://\(world.server.gateway)/file.zsync"])
            #expect(run.status == 0, "\(run.output)\(run.errors)")
            run = try await world.run(["cmp", "new", "site/file"])
            #expect(run.status == 0, "\(run.output)")
        }
    }
}
