// A backup of a running server, restored into another directory (docs/storage.md#backup).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct BackupTests {
    /// A server with a small write and one whose body is a blob, and a backup of it.
    private func backedUp(_ scratch: Scratch, _ options: String...) async throws -> (server: ServerProcess, file: String) {
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next()))
        let large = "{\"text\": \"" + String(repeating: "x", count: 2_000_000) + "\"}"
        for body in ["{\"text\": \"small\"}", large] {
            let fields = ["Content-Type: application/json", "Expect:"]
            try await #expect(Curl.send("POST", "http://\(server.gateway)/v1/notes", fields: fields, body: body).status == 202)
        }
        let backup = try await server.command(["backup", scratch.path + "/b.tar"] + options)
        #expect(backup.status == 0, "\(backup.errors)")
        return (server, scratch.path + "/b.tar")
    }

    private func restore(_ file: String, into directory: String) async throws -> Command {
        try await Command.rockpool(["restore", file, "--state-dir", directory])
    }

    @Test func everyWriteIsInTheRestoredOutbox() async throws {
        let scratch = try Scratch()
        let (server, file) = try await backedUp(scratch)
        #expect(Files.mode(of: file) == 0o600)
        let before = try await server.operations().compactMap { $0["id"]?.string }.sorted()
        let names = try await Command.run("/usr/bin/tar", ["-tf", file]).output
        #expect(names.contains("data.sqlite") && names.contains("rockpool.yaml") && !names.contains("ca/") && !names.contains("token"))
        try await server.stop()
        let restored = try await restore(file, into: scratch.path + "/state")
        #expect(restored.status == 0, "\(restored.errors)")
        let list = try await Command.rockpool(
            ["outbox", "ls", "--format", "json", "--state-dir", scratch.path + "/state"],
            environment: ["ROCKPOOL_STORAGE_CACHE_DIR": scratch.path + "/cache"])
        let after = try JSONValue.parse(Array(list.output.utf8))["items"]?.array?.compactMap { $0["id"]?.string }.sorted()
        #expect(before.count == 2 && after == before, "\(list.errors)")
        let again = try await restore(file, into: scratch.path + "/state")
        #expect(again.status == 1 && again.errors.contains("holds an outbox"), "\(again.errors)")
    }

    @Test func keysComeOnlyWhenAskedFor() async throws {
        let scratch = try Scratch()
        let (_, file) = try await backedUp(scratch, "--with-keys")
        let names = try await Command.run("/usr/bin/tar", ["-tf", file]).output
        #expect(names.contains("admin-token"))
    }

    @Test func aDamagedArchiveChangesNothing() async throws {
        let scratch = try Scratch()
        let (_, file) = try await backedUp(scratch)
        var bytes = try Files.bytes(of: file)
        bytes[bytes.count / 2] ^= 1
        try Files.write(bytes, to: file)
        let refused = try await restore(file, into: scratch.path + "/state")
        #expect(refused.status == 1 && refused.errors.contains("damaged"), "\(refused.errors)")
        #expect(!FileManager.default.fileExists(atPath: scratch.path + "/state/data.sqlite"))
        try Files.write(Array(bytes[..<4000]), to: file)
        try await #expect(restore(file, into: scratch.path + "/state").status == 1)
        try Files.write(Array("no backup".utf8), to: file)
        try await #expect(restore(file, into: scratch.path + "/state").status == 1)
    }
}
