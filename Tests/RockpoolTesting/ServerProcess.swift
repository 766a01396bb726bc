// The real server in a process of its own, with directories of its own.
import Foundation
import RockpoolCore
import Synchronization

/// A `rockpool serve` that can be stopped, killed and started again on the same directories.
package final class ServerProcess: Sendable {
    /// Where it is to be reached while it runs.
    package struct Addresses: Hashable, Sendable {
        package var proxy: String
        package var admin: String
    }

    /// It did not start; `command` says how it ended.
    package struct DidNotStart: Error, CustomStringConvertible {
        package let command: Command
        package var description: String { "rockpool serve ended with \(command.status): \(command.errors)" }
    }

    /// Everything of this server lies here.
    package let scratch: Scratch
    /// `host:port` of the gateway that stands for the upstream.
    package let gateway: String
    /// Where it listens unless its settings say otherwise. Not port 0: the system would give it that of an upstream that is away.
    private let listen: (proxy: String, admin: String)
    private let state: Mutex<(child: ChildProcess?, addresses: Addresses)>

    package var cacheDirectory: String { scratch.path + "/cache" }
    package var stateDirectory: String { scratch.path + "/state" }
    package var configurationFile: String { scratch.path + "/rockpool.yaml" }

    private init(scratch: Scratch) {
        self.scratch = scratch
        gateway = "127.0.0.1:\(FreePort.next())"
        listen = ("127.0.0.1:\(FreePort.next())", "127.0.0.1:\(FreePort.next())")
        state = Mutex((nil, Addresses(proxy: "", admin: "")))
    }

    /// Starts a server and waits for its ready line. Throws `DidNotStart` with how it ended instead.
    package static func start(_ settings: ServerSettings) async throws -> ServerProcess {
        let server = try prepare(settings)
        try await server.start()
        return server
    }

    /// Directories and configuration, nothing started yet.
    package static func prepare(_ settings: ServerSettings) throws -> ServerProcess {
        let server = ServerProcess(scratch: try Scratch())
        try server.configure(settings)
        return server
    }

    /// Writes another configuration; in force after the next start or SIGHUP.
    package func configure(_ settings: ServerSettings) throws {
        let document = settings.document(cache: cacheDirectory, state: stateDirectory, gateway: gateway, listen: listen)
        try Files.write(document.serialized(), to: configurationFile)
    }

    /// Starts it, for the first time or again; `environment` is for this one start, `launcher` a command that becomes the one behind it.
    /// Throws `DidNotStart`.
    package func start(environment: [String: String] = [:], launcher: [String] = []) async throws {
        let command = launcher + [Binary.path, "serve", "--config", configurationFile]
        let child = try await ChildProcess(command[0], Array(command.dropFirst()), environment: environment)
        let line = try await eventualValue("the ready line") { () -> String?? in
            if let end = child.output.firstIndex(of: "\n") { return .some(String(child.output[..<end])) }
            return child.isRunning ? nil : .some(nil)
        }
        guard let line, let addresses = Addresses(readyLine: line) else { throw DidNotStart(command: try await ended(child)) }
        state.withLock { $0 = (child, addresses) }
    }

    private func ended(_ child: ChildProcess) async throws -> Command {
        child.signal(SIGTERM)
        return Command(status: try await child.ending().status, output: child.output, errors: child.errors)
    }

    private var child: ChildProcess? { state.withLock { $0.child } }
    /// `host:port` of the forward proxy.
    package var proxy: String { state.withLock { $0.addresses.proxy } }
    /// `host:port` of the admin API.
    package var admin: String { state.withLock { $0.addresses.admin } }
    /// What it has written to stdout since its last start.
    package var output: String { child?.output ?? "" }
    /// What it has written to stderr since its last start.
    package var errors: String { child?.errors ?? "" }
    /// Of the running process.
    package var pid: Int32 { child?.pid ?? 0 }

    /// Sends a signal and does not wait.
    package func signal(_ number: Int32) { child?.signal(number) }

    /// Ends it by SIGTERM and gives how it ended: `.exit(0)` when all is well.
    @discardableResult
    package func stop() async throws -> ChildProcess.Ending {
        signal(SIGTERM)
        return try await ending()
    }

    /// Ends it by SIGKILL.
    package func kill() async throws {
        signal(SIGKILL)
        try await ending()
    }

    /// Waits until it ends, by whatever. Throws `NeverCame` when it has not within `limit`.
    @discardableResult
    package func ending(within limit: Duration = .seconds(30)) async throws -> ChildProcess.Ending {
        guard let child else { return .exit(0) }
        return try await child.ending(within: limit)
    }

    /// Whether a process was started and has not ended.
    package var isRunning: Bool { child?.isRunning == true }

    /// Resident memory of the process, in bytes.
    package func residentBytes() throws -> Int64 {
        let lines = try Files.text(of: "/proc/\(pid)/status").split(separator: "\n")
        let line = lines.first { $0.hasPrefix("VmRSS:") } ?? ""
        return (line.split(separator: " ").dropFirst().first.flatMap { Int64($0) } ?? 0) * 1024
    }

    /// Runs one of the commands against this server.
    package func command(_ arguments: String...) async throws -> Command { try await command(arguments) }

    /// The same with arguments in a list.
    package func command(_ arguments: [String]) async throws -> Command {
        try await Command.rockpool(arguments + ["--config", configurationFile])
    }

    deinit { child?.signal(SIGKILL) }
}

extension ServerProcess.Addresses {
    /// `rockpool ready proxy=H:P admin=H:P` (docs/reference/cli.md#serve).
    init?(readyLine line: String) {
        let words = line.split(separator: " ")
        guard words.count == 4, words[0] == "rockpool", words[1] == "ready", words[2].hasPrefix("proxy="), words[3].hasPrefix("admin=")
        else { return nil }
        self.init(proxy: String(words[2].dropFirst(6)), admin: String(words[3].dropFirst(6)))
    }
}
