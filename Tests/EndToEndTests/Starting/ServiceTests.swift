// The server as a systemd service: its notifications to the service manager, and the effect of a reload.
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct ServiceTests {
    @Test func theServiceManagerHearsEveryState() async throws {
        let (socket, server) = (try NoticeSocket(), try ServerProcess.prepare(ServerSettings()))
        try await server.start(environment: ["NOTIFY_SOCKET": socket.path, "WATCHDOG_USEC": "1000000"])
        var told: [String] = []
        func hear(_ state: String) async throws {
            try await eventually(state) {
                while let next = socket.next() { told.append(next) }
                return told.contains { $0.hasPrefix(state) }
            }
        }
        try await hear("READY=1")
        try await hear("WATCHDOG=1")
        told = []
        server.signal(SIGHUP)
        try await hear("RELOADING=1\nMONOTONIC_USEC=")
        try await hear("READY=1")
        try await #expect(server.stop() == .exit(0))
        try await hear("STOPPING=1")
    }

    @Test func aReloadKeepsConnectionsAndSaysWhatWaits() async throws {
        let api = try await NotesServer.start()
        let server = try await ServerProcess.start(ServerSettings(upstream: api.port))
        async let slow = Curl.send("GET", "http://\(server.gateway)/v1/slow?ms=1500")
        try await eventually("the request upstream") { !api.log().isEmpty }
        let limits: JSONValue = ["cache_limit": "77 MB", "memory_limit": "7 MB"]
        try server.configure(ServerSettings(upstream: api.port, ["policy": "standard"], storage: limits))
        server.signal(SIGHUP)
        try await eventually("what waits, on stderr") { server.errors.contains("storage.memory_limit") }
        #expect(server.errors.contains("configuration reloaded"), "\(server.errors)")
        try await #expect(slow.status == 200)
        try await #expect(server.get("/v1/storage").json?["cache"]?["limitBytes"]?.integer == 77_000_000)
        try await #expect(server.stop() == .exit(0))
        await api.stop()
    }

    @Test func theUnitFileIsOneSystemdTakes() async throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardizedFileURL.path
        let unit = try Files.text(of: root + "/Config/rockpool.service")
        for line in ["Type=notify", "ExecReload=", "WatchdogSec=", "StateDirectoryMode=0700", "NoNewPrivileges=yes", "ProtectSystem="] {
            #expect(unit.contains(line), "\(line)")
        }
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze") else { return }
        let scratch = try Scratch()
        let file = try scratch.write(unit.replacing("@BINDIR@/rockpool", with: "/bin/true"), to: "rockpool.service")
        let verdict = try await Command.run("/usr/bin/systemd-analyze", ["verify", "--man=no", file])
        #expect(verdict.status == 0 && !verdict.errors.contains("rockpool.service:"), "\(verdict.errors)")
    }

    @Test func installingPutsAllInPlaceAndUninstallingLeavesTheConfiguration() async throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardizedFileURL.path
        let place = try Scratch()
        let arguments = ["-s", "-C", root, "DESTDIR=\(place.path)", "PREFIX=/usr"]
        let make = try await Command.run("/usr/bin/make", arguments + ["install"])
        #expect(make.status == 0, "\(make.errors)")
        let unit = try Files.text(of: place.path + "/usr/lib/systemd/system/rockpool.service")
        #expect(unit.contains("ExecStart=/usr/bin/rockpool serve") && !unit.contains("@BINDIR@"))
        let installed = try await Command.run(
            place.path + "/usr/bin/rockpool", ["config", "check", place.path + "/etc/rockpool/rockpool.yaml"])
        #expect(installed.status == 0, "\(installed.errors)")
        for file in [
            "man/man1/rockpool.1", "bash-completion/completions/rockpool", "zsh/site-functions/_rockpool",
            "fish/vendor_completions.d/rockpool.fish",
        ] { #expect(try !Files.bytes(of: place.path + "/usr/share/" + file).isEmpty) }
        try await #expect(Command.run("/usr/bin/make", arguments + ["uninstall"]).status == 0)
        let left = try await Command.run("/usr/bin/find", [place.path, "-type", "f"])
        #expect(left.output == place.path + "/etc/rockpool/rockpool.yaml\n")
    }

    @Test func watchingGoesOnUntilTheServerIsGone() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        let child = try await ChildProcess(
            Binary.path, ["status", "--watch", "--format", "json", "--config", server.configurationFile])
        try await eventually("two looks") { child.output.split(separator: "\n").count >= 2 }
        #expect(try child.output.split(separator: "\n").allSatisfy { try JSONValue.parse(Array($0.utf8))["state"]?.string == "synced" })
        try await server.stop()
        try await #expect(child.ending() == .exit(69))
    }
}
