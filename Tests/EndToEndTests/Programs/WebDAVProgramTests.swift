// rclone and cadaver against wsgidav, vdirsyncer against Radicale: each lists, reads and writes online, away and back.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(4))) struct WebDAVProgramTests {
    private static let wsgidav = Python.with("wsgidav", "cheroot")
    private static let radicale = Python.with("radicale", "vdirsyncer")

    private static func isInstalled(_ program: String) -> Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(program)")
        }
    }

    private func share(_ port: Int, _ directory: String) throws -> [String] {
        try FileManager.default.createDirectory(atPath: directory + "/files", withIntermediateDirectories: true)
        return [
            try #require(Self.wsgidav), "-c", "from wsgidav.server.server_cli import run; run()", "--host", "127.0.0.1", "--port",
            "\(port)",
            "--root", directory + "/files", "--auth", "anonymous", "--server", "cheroot",
        ]
    }

    @Test(.enabled(if: Self.wsgidav != nil && Self.isInstalled("rclone"), "rclone or wsgidav is not installed"))
    func rcloneCopiesAndListsWhileTheServerIsAway() async throws {
        try await ProgramWorld.with(share, upstream: ProgramWorld.webDAV) { world in
            let rclone = { (arguments: [String]) in
                let options = ["--config", "/dev/null", "--webdav-url", "http://\(world.server.gateway)/", "--webdav-vendor", "other"]
                return try await world.run(["rclone"] + options + ["--retries", "1", "--low-level-retries", "1"] + arguments)
            }
            let list = { try await rclone(["lsf", "-R", "--format", "ps", ":webdav:"]).output.split(separator: "\n").sorted() }
            try world.write("low water", to: "a.txt")
            try world.write("high", to: "tree/x.txt")
            try world.write("higher", to: "tree/sub/y.txt")
            var run = try await rclone(["copy", "a.txt", ":webdav:dir"])
            #expect(run.status == 0, "\(run.errors)")
            try await #expect(list() == ["dir/;-1", "dir/a.txt;9"])
            try await #expect(rclone(["cat", ":webdav:dir/a.txt"]).output == "low water")
            try await world.turn("offline")
            try await #expect(list() == ["dir/;-1", "dir/a.txt;9"])
            for arguments in [["copy", "tree", ":webdav:tree"], ["moveto", ":webdav:dir/a.txt", ":webdav:dir/b.txt"]] {
                run = try await rclone(arguments)
                #expect(run.status == 0, "\(arguments) \(run.errors)")
            }
            // As the server would, Rockpool refuses to move what it has just said is not there.
            try await #expect(rclone(["moveto", ":webdav:dir/none.txt", ":webdav:dir/some.txt"]).status != 0)
            let move = "http://\(world.server.gateway)/dir/a.txt/"
            let moved = try await world.run([
                "curl", "-s", "-o", "moved", "-w", "%{http_code}", "-X", "MOVE", "-H", "Destination: /e", move,
            ])
            #expect(moved.output == "404", "the file was moved away before")
            let expected = ["dir/;-1", "dir/b.txt;9", "tree/;-1", "tree/sub/;-1", "tree/sub/y.txt;6", "tree/x.txt;4"]
            try await #expect(list().map { String($0) } == expected)
            try await #expect(rclone(["cat", ":webdav:dir/b.txt"]).output == "low water")
            try await #expect(rclone(["cat", ":webdav:tree/sub/y.txt"]).output == "higher")
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            #expect(world.text("files/dir/b.txt") == "low water" && world.text("files/dir/a.txt") == nil)
            #expect(world.text("files/tree/x.txt") == "high" && world.text("files/tree/sub/y.txt") == "higher")
            try await #expect(list().map { String($0) } == expected)
        }
    }

    @Test(.enabled(if: Self.wsgidav != nil && Self.isInstalled("cadaver"), "cadaver or wsgidav is not installed"))
    func cadaverWorksInCollectionsThatWait() async throws {
        try await ProgramWorld.with(share, upstream: ProgramWorld.webDAV) { world in
            let cadaver = { (script: String) in try await world.run(["cadaver", "http://\(world.server.gateway)/"], input: script).output }
            try world.write("low water", to: "a.txt")
            _ = try await cadaver("put a.txt\nls\n")
            #expect(world.text("files/a.txt") == "low water")
            try await world.turn("offline")
            let away = try await cadaver("mkcol new\nput a.txt new/b.txt\nmove a.txt new/c.txt\nls new\nget new/c.txt got.txt\nls\n")
            #expect(away.contains("b.txt") && away.contains("c.txt") && !away.contains("failed"), "\(away)")
            #expect(world.text("got.txt") == "low water")
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            #expect(world.text("files/new/b.txt") == "low water" && world.text("files/new/c.txt") == "low water")
            #expect(world.text("files/a.txt") == nil)
        }
    }

    private func event(_ id: String, _ summary: String) -> String {
        [
            "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//t//t//EN", "BEGIN:VEVENT", "UID:\(id)", "DTSTAMP:20240101T000000Z",
            "DTSTART:20240101T100000Z", "DTEND:20240101T110000Z", "SUMMARY:\(summary)", "END:VEVENT", "END:VCALENDAR", "",
        ].joined(separator: "\r\n")
    }

    @Test(.enabled(if: Self.radicale != nil, "radicale or vdirsyncer is not installed"))
    func vdirsyncerBringsWhatWasChangedAway() async throws {
        let python = try #require(Self.radicale)
        let calendars = { (port: Int, directory: String) in
            let lines = [
                "[server]", "hosts=127.0.0.1:\(port)", "[auth]", "type=none", "[storage]", "filesystem_folder=\(directory)/server",
            ]
            try Files.write(Array(lines.joined(separator: "\n").utf8), to: directory + "/radicale.conf")
            return [python, "-m", "radicale", "--config", directory + "/radicale.conf"]
        }
        try await ProgramWorld.with(calendars, upstream: ProgramWorld.webDAV) { world in
            let options = ["-u", "u:p", "-X", "MKCALENDAR"]
            _ = try await world.run(["curl", "-s"] + options + ["http://127.0.0.1:\(world.port)/u/cal/"])
            for (name, address) in [("one", world.server.gateway), ("two", "127.0.0.1:\(world.port)")] {
                try FileManager.default.createDirectory(atPath: world.scratch.path + "/\(name)/cal", withIntermediateDirectories: true)
                let lines = [
                    "[general]", "status_path = \"\(world.scratch.path)/status-\(name)\"", "[pair p]", "a = \"l\"", "b = \"r\"",
                    "collections = [\"cal\"]", "conflict_resolution = \"a wins\"", "[storage l]", "type = \"filesystem\"",
                    "path = \"\(world.scratch.path)/\(name)/\"", "fileext = \".ics\"", "[storage r]", "type = \"caldav\"",
                    "url = \"http://\(address)/u/\"", "username = \"u\"", "password = \"p\"",
                ]
                try world.write(lines.joined(separator: "\n"), to: name + ".conf")
            }
            let sync = { (name: String, words: [String]) in
                let command = [python, "-m", "vdirsyncer", "-c", world.scratch.path + "/\(name).conf"]
                let run = try await world.run(command + words, input: "y\ny\ny\n")
                #expect(run.status == 0, "\(words): \(run.output) \(run.errors)")
            }
            for name in ["one", "two"] { try await sync(name, ["discover"]) }
            try world.write(event("e1", "first"), to: "one/cal/e1.ics")
            try world.write(event("e2", "second"), to: "one/cal/e2.ics")
            try await sync("one", ["sync"])
            try await sync("one", ["sync"])
            try await world.turn("offline")
            try world.write(event("e3", "third"), to: "one/cal/e3.ics")
            try world.write(event("e1", "changed"), to: "one/cal/e1.ics")
            try FileManager.default.removeItem(atPath: world.scratch.path + "/one/cal/e2.ics")
            for _ in 0..<2 { try await sync("one", ["sync"]) }
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            for name in ["one", "two"] { try await sync(name, ["sync"]) }
            let names = try FileManager.default.contentsOfDirectory(atPath: world.scratch.path + "/two/cal")
            let texts = names.compactMap { world.text("two/cal/" + $0) }.joined()
            #expect(names.count == 2 && texts.contains("SUMMARY:changed") && texts.contains("SUMMARY:third"), "\(names) \(texts)")
            #expect(world.text("one/cal/e1.ics")?.contains("SUMMARY:changed") == true && world.text("one/cal/e2.ics") == nil)
        }
    }
}
