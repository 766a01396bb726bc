// A `rockpool fleet collect` in its own process.
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization

/// A collector that can be stopped and started again on its directory and port.
final class CollectorProcess: Sendable {
    let scratch: Scratch
    let address = "127.0.0.1:\(FreePort.next())"
    private let options: [String]
    private let child = Mutex<ChildProcess?>(nil)

    var directory: String { scratch.path + "/office" }
    var url: String { "http://\(address)/v1/reports" }
    var errors: String { child.withLock({ $0 })?.errors ?? "" }

    /// Starts a collector.
    static func start(_ options: [String] = []) async throws -> CollectorProcess {
        let collector = CollectorProcess(scratch: try Scratch(), options: options)
        try await collector.start()
        return collector
    }

    private init(scratch: Scratch, options: [String]) {
        (self.scratch, self.options) = (scratch, options)
    }

    func start() async throws {
        let process = try await ChildProcess(
            Binary.path, ["fleet", "collect", "--state-dir", directory, "--listen", address] + options)
        child.withLock { $0 = process }
        try await eventually("the ready line") { process.output == "rockpool ready collector=\(self.address)\n" }
    }

    @discardableResult
    func stop() async throws -> ChildProcess.Ending? {
        child.withLock({ $0 })?.signal(SIGTERM)
        return try await child.withLock({ $0 })?.ending()
    }

    /// Adds a site. Returns the path of a file with its secret.
    func add(_ site: String) async throws -> String {
        let added = try await Command.rockpool(["fleet", "add", site, "--state-dir", directory])
        guard added.status == 0 else { throw NeverCame(description: "\(added)") }
        let file = try scratch.write(added.output, to: "secret-\(site)")
        try Files.setMode(0o600, of: file)
        return file
    }

    /// The list of sites, with the token.
    func sites() async throws -> [JSONValue] {
        let token = try Files.text(of: directory + "/admin-token").filter { !$0.isNewline }
        let reply = try await Curl.send("GET", "http://\(address)/v1/sites", fields: ["Authorization: Bearer \(token)"])
        return reply.json?["items"]?.array ?? []
    }

    func status(_ options: String...) async throws -> Command {
        try await Command.rockpool(["fleet", "status", "--state-dir", directory] + options)
    }

    deinit { child.withLock({ $0 })?.signal(SIGKILL) }
}
