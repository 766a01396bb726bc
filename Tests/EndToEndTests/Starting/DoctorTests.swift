// `rockpool doctor` with a healthy setup, an offline upstream, and an invalid configuration (docs/reference/cli.md#doctor).
import Glibc
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct DoctorTests {
    /// Returns the exit status, and the result of each check by name.
    private func examine(_ server: ServerProcess) async throws -> (status: Int32, results: [String: String]) {
        let command = try await server.command("doctor", "--format", "json")
        let checks = try #require(try JSONValue.parse(Array(command.output.utf8))["checks"]?.array, "\(command.errors)")
        let pairs = checks.compactMap { check in check["check"]?.string.flatMap { name in check["result"]?.string.map { (name, $0) } } }
        return (command.status, Dictionary(pairs) { first, _ in first })
    }

    @Test func theDoctorKnowsAHealthySetUpFromOneWhoseUpstreamIsAway() async throws {
        try await World.with { world in
            let healthy = try await examine(world.server)
            #expect(healthy.status == 0 && healthy.results["server"] == "ok" && !healthy.results.values.contains("fail"), "\(healthy)")
            await world.goOffline()
            let away = try await examine(world.server)
            #expect(away.status == 0, "an offline upstream is not an error: \(away)")
            #expect(away.results.contains { $0.value == "warn" && healthy.results[$0.key] == "ok" }, "\(away)")
        }
    }

    /// A user who may not call the server is told how to get that right, and does not go round in circles; who would start one more is told
    /// the command with the rights that it needs.
    @Test(.enabled(if: geteuid() == 0)) func aUserWithoutTheRightIsToldTheWay() async throws {
        let (server, home) = (try await ServerProcess.start(ServerSettings()), try Scratch())
        try Files.setMode(0o777, of: home.path)
        let environment = ["HOME": home.path, "XDG_RUNTIME_DIR": "", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""]
        func user(_ words: String...) async throws -> Command {
            let drop = ["--reuid=65534", "--regid=65534", "--clear-groups", Binary.path]
            return try await Command.run("/usr/bin/setpriv", drop + words, environment: environment)
        }
        let doctor = try await user("doctor", "--format", "json", "--state-dir", server.stateDirectory)
        let checks = try #require(try JSONValue.parse(Array(doctor.output.utf8))["checks"]?.array, "\(doctor.errors)")
        #expect(doctor.status == 1 && checks.count == 1 && checks[0]["advice"]?.string == "run the command with sudo", "\(doctor.output)")
        let one = try await user("serve", "--proxy-listen", server.proxy, "--admin-listen", server.admin)
        #expect(one.status == 1 && one.errors.contains("to give it one more API: sudo rockpool add https://"), "\(one.errors)")
        try await server.stop()
    }

    /// A proxy for other machines without a password is named; the server need not run.
    @Test func anOpenProxyIsNamed() async throws {
        let closed = try ServerProcess.prepare(ServerSettings())
        try await #expect(examine(closed).results["proxy.listen"] == nil)
        var settings = ServerSettings()
        settings.proxy = ["listen": .string("0.0.0.0:\(FreePort.next())"), "allow": ["192.168.0.0/16"]]
        let open = try await examine(ServerProcess.prepare(settings))
        #expect(open.results["proxy.listen"] == "warn", "\(open)")
    }

    /// A directory whose database is gone is named before a start is refused.
    @Test func aMissingDatabaseIsNamed() async throws {
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next()))
        try await server.stop()
        try await #expect(examine(server).results["state_dir"] == "ok")
        #expect(truncate("\(server.stateDirectory)/data.sqlite", 0) == 0)
        let found = try await examine(server)
        #expect(found.status == 1 && found.results["state_dir"] == "fail", "\(found)")
        // Nor does a command that opens the stores begin anew, so that the next start would tell nothing.
        #expect(unlink("\(server.stateDirectory)/data.sqlite") == 0)
        try await #expect(examine(server).results["state_dir"] == "fail")
        for words in [["cache", "ls"], ["storage-cleanup"]] {
            let command = try await server.command(words)
            #expect(command.status != 0 && command.errors.contains("data.sqlite is missing"), "\(words): \(command.errors)")
        }
        #expect(access("\(server.stateDirectory)/data.sqlite", F_OK) != 0)
    }

    /// A gateway sends the origin's name, and with it a signature for the gateway's name is wrong.
    @Test func aGatewayThatBreaksSignaturesIsNamed() async throws {
        let bucket: JSONValue = ["routes": [["match": "/bucket/**", "kind": "s3"]]]
        let own: JSONValue = ["preserve_host": true, "routes": [["match": "/bucket/**", "kind": "s3"]]]
        for (upstream, expected) in [(bucket, "warn"), (own, nil)] as [(JSONValue, String?)] {
            let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next(), upstream))
            let found = try await examine(server)
            #expect(found.results.first { $0.key.hasPrefix("signatures") }?.value == expected, "\(found)")
            try await server.stop()
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next()))
        #expect(try await !examine(server).results.keys.contains { $0.hasPrefix("signatures") })
        let signature = "AWS4-HMAC-SHA256 Credential=AK/20260101/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=00"
        _ = try await Curl.send(
            "GET", "http://\(server.gateway)/bucket/one", fields: ["Authorization: \(signature)", "X-Amz-Date: 20260101T000000Z"])
        #expect(try await examine(server).results.first { $0.key.hasPrefix("signatures") }?.value == "warn")
        try await server.stop()
    }

    @Test func whatIsWrongIsSaidWithItsLineAndFails() async throws {
        let server = try ServerProcess.prepare(ServerSettings(upstream: 4000, ["polcy": "standard"]))
        let command = try await server.command("doctor")
        #expect(command.status == 1 && command.output.contains("rockpool.yaml:1: unknown key \"polcy\""), "\(command.output)")
    }
}
