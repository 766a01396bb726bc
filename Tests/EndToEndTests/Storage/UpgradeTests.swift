// Outboxes of every released schema are opened with nothing lost, and newer ones are refused (docs/storage.md#database-rules).
import Foundation
import GRDB
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct UpgradeTests {
    /// The SQL of an outbox, with a pending, a sent and a delivered operation; version 1 is the oldest.
    private static func fixture(_ version: Int) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardizedFileURL.path
        return try Files.text(of: root + "/fixtures/databases/data-v\(version).sql")
    }

    /// A state directory with an outbox of this schema.
    private func directory(of version: Int, in scratch: Scratch) async throws -> String {
        let path = scratch.path + "/state"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let queue = try DatabaseQueue(path: path + "/data.sqlite")
        let sql = try Self.fixture(min(version, 6))
        try await queue.writeWithoutTransaction { db in
            try db.execute(sql: sql)
            try db.execute(sql: "PRAGMA application_id = \(0x5250_6474); PRAGMA user_version = \(version)")
        }
        try queue.close()
        return path
    }

    private func list(_ directory: String, in scratch: Scratch) async throws -> Command {
        try await Command.rockpool(
            ["outbox", "ls", "--state", "all", "--format", "json", "--state-dir", directory],
            environment: ["ROCKPOOL_STORAGE_CACHE_DIR": scratch.path + "/cache"])
    }

    @Test(arguments: 1...5) func everyReleasedOutboxOpensWithNothingLost(_ version: Int) async throws {
        let scratch = try Scratch()
        let listed = try await list(directory(of: version, in: scratch), in: scratch)
        let items = try JSONValue.parse(Array(listed.output.utf8))["items"]?.array ?? []
        #expect(items.compactMap { $0["state"]?.string } == ["pending", "uncertain", "delivered"], "\(listed.errors)")
        #expect(items.compactMap { $0["idempotencyKey"]?.string } == ["key-3", "key-4", "key-5"])
    }

    /// A live write that was under way is an uncertain operation at the next start.
    @Test func aLiveWriteOfAnOutboxIsAmongItsOperations() async throws {
        let scratch = try Scratch()
        let listed = try await list(directory(of: 6, in: scratch), in: scratch)
        let items = try JSONValue.parse(Array(listed.output.utf8))["items"]?.array ?? []
        #expect(items.compactMap { $0["state"]?.string } == ["pending", "uncertain", "delivered", "uncertain"], "\(listed.errors)")
        #expect(items.compactMap { $0["idempotencyKey"]?.string } == ["key-3", "key-4", "key-5", "key-6"])
    }

    @Test func anOutboxOfANewerVersionIsRefusedInOneSentence() async throws {
        let scratch = try Scratch()
        let path = try await directory(of: 99, in: scratch)
        let before = try Files.bytes(of: path + "/data.sqlite")
        let start = try await Command.rockpool(
            ["serve", "--state-dir", path, "--cache-dir", scratch.path + "/cache", "--proxy-listen", "127.0.0.1:0"])
        #expect(start.status == 1 && start.errors.contains("has schema 99, this Rockpool knows up to"), "\(start.errors)")
        #expect(start.errors.split(separator: "\n").count == 1, "\(start.errors)")
        try #expect(Files.bytes(of: path + "/data.sqlite") == before)
    }
}
