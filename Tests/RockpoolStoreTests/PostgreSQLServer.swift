// A real PostgreSQL of Debian's package `postgresql`, for the tests of a fleet.
import Foundation
import RockpoolCore
import RockpoolStore
import Testing

/// One server on a port of loopback, gone with this object. Run as the user `postgres` where this process is root.
final class PostgreSQLServer: Sendable {
    /// The directory of the newest server's programs; nil where the package is missing.
    static let programs: String? = {
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
        return versions.compactMap { Int($0) }.max().map { "/usr/lib/postgresql/\($0)/bin" }
    }()

    private let directory: String
    let port: Int

    init() throws {
        directory = "/tmp/rp-pg-\(UUID().uuidString.prefix(8))"
        port = Int.random(in: 20_000..<32_000)
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        if getuid() == 0 { try Self.run("/bin/chown", ["postgres", directory]) }
        try call("initdb", ["-D", "\(directory)/data", "-A", "trust", "-U", "postgres", "-N"])
        let settings = "port = \(port)\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '\(directory)'\nfsync = off\n"
        let file = "\(directory)/data/postgresql.auto.conf"
        let handle = try #require(FileHandle(forWritingAtPath: file))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(settings.utf8))
        try handle.close()
        try start()
        try sql("CREATE DATABASE rockpool", in: "postgres")
    }

    deinit {
        try? stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    func start() throws { try call("pg_ctl", ["-D", "\(directory)/data", "-w", "-l", "\(directory)/log", "start"]) }
    func stop() throws { try call("pg_ctl", ["-D", "\(directory)/data", "-w", "-m", "immediate", "stop"]) }

    /// Copies the directory of its data.
    func keepCopy() throws {
        try stop()
        try Self.run("/bin/cp", ["-a", "\(directory)/data", "\(directory)/copy"])
        try start()
    }

    /// Puts the copy in the place of what has become of the data since.
    func restoreCopy() throws {
        try stop()
        try Self.run("/bin/rm", ["-r", "\(directory)/data"])
        try Self.run("/bin/mv", ["\(directory)/copy", "\(directory)/data"])
        try start()
    }

    func sql(_ text: String, in database: String = "rockpool") throws {
        try call("psql", ["-h", "127.0.0.1", "-p", "\(port)", "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1", "-c", text])
    }

    /// The settings of a node.
    func settings(_ node: String, _ absence: OutboxAbsence = .local) -> OutboxSettings {
        var settings = OutboxSettings()
        settings.store = .postgresql
        settings.url = "postgresql://postgres@127.0.0.1:\(port)/rockpool?sslmode=disable"
        settings.node = node
        settings.whenUnreachable = absence
        return settings
    }

    private func call(_ program: String, _ words: [String]) throws {
        let command = ["\(Self.programs ?? "")/\(program)"] + words
        if getuid() == 0 {
            let user = ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
            try Self.run("/usr/bin/setpriv", user + command)
        } else {
            try Self.run(command[0], Array(command.dropFirst()))
        }
    }

    private struct Failed: Error { let words: [String], status: Int32 }

    /// Not by `Process`, which waits until the server that `pg_ctl` starts has closed what it inherits.
    private static func run(_ path: String, _ words: [String]) throws {
        let words = ["env", "-C", "/", path] + words
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor: CInt in 0...2 { posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0) }
        var (child, status): (pid_t, CInt) = (0, 0)
        guard posix_spawn(&child, "/usr/bin/env", &actions, nil, &arguments, environ) == 0 else { throw Failed(words: words, status: -1) }
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else { throw Failed(words: words, status: status) }
    }
}
