// The real server in its own process with its own directories.
import Foundation
import RockpoolCore
import Synchronization

/// A `rockpool serve` that can be stopped, killed and started again on the same directories.
package final class ServerProcess: Sendable {
    /// The addresses of the listeners while the server runs.
    package struct Addresses: Hashable, Sendable {
        package var proxy: String
        package var admin: String
    }

    /// Thrown when the server did not start; `command` holds the exit status and the output.
    package struct DidNotStart: Error, CustomStringConvertible {
        package let command: Command
        package var description: String { "rockpool serve ended with \(command.status): \(command.errors)" }
    }

    /// The directory that holds all files of this server.
    package let scratch: Scratch
    /// `host:port` of the gateway listener for the upstream.
    package let gateway: String
    /// The listen addresses unless the settings override them. Not port 0: the system could assign the port of an upstream that is offline.
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

    /// Starts a server and waits for its ready line. Throws `DidNotStart` when the server ends instead.
    package static func start(_ settings: ServerSettings) async throws -> ServerProcess {
        let server = try prepare(settings)
        try await server.start()
        return server
    }

    /// Creates the directories and the configuration without starting the server.
    package static func prepare(_ settings: ServerSettings) throws -> ServerProcess {
        let server = ServerProcess(scratch: try Scratch())
        try server.configure(settings)
        return server
    }

    /// Writes another configuration; it takes effect after the next start or SIGHUP.
    package func configure(_ settings: ServerSettings) throws {
        let document = settings.document(cache: cacheDirectory, state: stateDirectory, gateway: gateway, listen: listen)
        try Files.write(document.serialized(), to: configurationFile)
    }

    /// Starts the server, for the first time or again. `environment` applies to this start only; `launcher` is a command that executes the
    /// server's command line, which follows it. Throws `DidNotStart`.
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
    /// The output on stdout since the last start.
    package var output: String { child?.output ?? "" }
    /// The output on stderr since the last start.
    package var errors: String { child?.errors ?? "" }
    /// Process id of the running server.
    package var pid: Int32 { child?.pid ?? 0 }

    /// Sends a signal without waiting for its effect.
    package func signal(_ number: Int32) { child?.signal(number) }

    /// Ends the server with SIGTERM and returns how it ended: `.exit(0)` after a clean stop.
    @discardableResult
    package func stop() async throws -> ChildProcess.Ending {
        signal(SIGTERM)
        return try await ending()
    }

    /// Ends the server with SIGKILL.
    package func kill() async throws {
        signal(SIGKILL)
        try await ending()
    }

    /// Waits until the server ends for any reason. Throws `NeverCame` when it has not ended within `limit`.
    @discardableResult
    package func ending(within limit: Duration = .seconds(30)) async throws -> ChildProcess.Ending {
        guard let child else { return .exit(0) }
        return try await child.ending(within: limit)
    }

    /// True if a process was started and has not ended.
    package var isRunning: Bool { child?.isRunning == true }

    /// Returns the resident memory of the process, in bytes.
    package func residentBytes() throws -> Int64 {
        let lines = try Files.text(of: "/proc/\(pid)/status").split(separator: "\n")
        let line = lines.first { $0.hasPrefix("VmRSS:") } ?? ""
        return (line.split(separator: " ").dropFirst().first.flatMap { Int64($0) } ?? 0) * 1024
    }

    /// Returns the processor time that the process has taken, in seconds.
    package func processorSeconds() throws -> Double {
        let fields = try Files.text(of: "/proc/\(pid)/stat").split(separator: ")").last?.split(separator: " ") ?? []
        // Times of the user and of the system, in hundredths (proc(5)).
        return fields.dropFirst(11).prefix(2).compactMap { Double($0) }.reduce(0, +) / 100
    }

    /// Runs one of the program's commands against this server.
    package func command(_ arguments: String...) async throws -> Command { try await command(arguments) }

    /// Runs a command with an array of arguments.
    package func command(_ arguments: [String]) async throws -> Command {
        try await Command.rockpool(arguments + ["--config", configurationFile])
    }

    deinit { child?.signal(SIGKILL) }
}

extension ServerProcess.Addresses {
    /// Parses `rockpool ready proxy=H:P admin=H:P` (docs/reference/cli.md#serve).
    init?(readyLine line: String) {
        let words = line.split(separator: " ")
        guard words.count == 4, words[0] == "rockpool", words[1] == "ready", words[2].hasPrefix("proxy="), words[3].hasPrefix("admin=")
        else { return nil }
        self.init(proxy: String(words[2].dropFirst(6)), admin: String(words[3].dropFirst(6)))
    }
}
