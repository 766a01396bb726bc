// `rockpool storage-cleanup` without a server, as a process that sets up SQLite itself (docs/storage.md#compaction).
import ArgumentParser
import Foundation
import Testing

@testable import rockpool

@Suite struct StoppedCleanupTests {
    @Test func `SQLite's copies stay on the volume of the cache`() async {
        await #expect(processExitsWith: .success) {
            unsetenv("SQLITE_TMPDIR")
            let home = FileManager.default.temporaryDirectory.path + "/rockpool-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: home) }
            try FileManager.default.createDirectory(
                atPath: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let storage = "storage: { cache_dir: \(home)/cache, state_dir: \(home)/state, min_free: 1 MB }"
            try Data(storage.utf8).write(to: URL(fileURLWithPath: home + "/rockpool.yaml"))
            let command = try await StorageCleanupCommand.asyncParse(["--vacuum", "--config", home + "/rockpool.yaml"])
            try await command.run()
            #expect(ProcessInfo.processInfo.environment["SQLITE_TMPDIR"] == home + "/cache/tmp")
        }
    }
}
