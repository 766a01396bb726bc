// Options shared by the commands: the configuration, the place of the server, and the output format
// (docs/reference/cli.md#common-options).
import ArgumentParser
import Foundation
import RockpoolCore
import Synchronization

/// `--config`, `--socket` and `--state-dir`, options of every command.
struct CommonOptions: ParsableArguments {
    @Option(
        name: .long,
        help: "The configuration file. By default ./rockpool.yaml or ~/.config/rockpool/rockpool.yaml, else the defaults are used.",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?
    @Option(name: .long, help: "The server's Unix socket (admin.socket).", completion: .file())
    var socket: String?
    @Option(name: .long, help: "The server's directory of the outbox (storage.state_dir).", completion: .directory)
    var stateDir: String?
    /// The warnings that this process has printed: a command may read the configuration several times.
    private static let warned = Mutex<Set<String>>([])

    /// Reads the configuration; warnings go to stderr. `flags` are the command's own options, by configuration key.
    func load(flags: [String: (flag: String, text: String)] = [:]) throws -> LoadedConfiguration {
        try load(file: config, flags: flags)
    }

    /// As `load`, with another file in place of that of `--config`.
    func load(file: String?, flags: [String: (flag: String, text: String)] = [:]) throws -> LoadedConfiguration {
        let environment = ProcessInfo.processInfo.environment
        let file = file ?? Directories.defaultFile(environment: environment)
        let flags = flags.merging(places(environment: environment)) { own, _ in own }
        var loaded = try ConfigurationSources(file: file, environment: environment, flags: flags).load()
        loaded.file = file
        for warning in loaded.warnings where Self.warned.withLock({ $0.insert(warning).inserted }) {
            Display.error.print("rockpool: warning: \(warning)")
        }
        return loaded
    }

    /// The keys that these options and their variables set.
    private func places(environment: [String: String]) -> [String: (flag: String, text: String)] {
        var flags: [String: (flag: String, text: String)] = [:]
        flags["admin.socket"] = socket.map { ("--socket", $0) } ?? environment["ROCKPOOL_SOCKET"].map { ("ROCKPOOL_SOCKET", $0) }
        flags["storage.state_dir"] =
            stateDir.map { ("--state-dir", $0) } ?? environment["ROCKPOOL_STATE_DIR"].map { ("ROCKPOOL_STATE_DIR", $0) }
        return flags
    }

    /// Checks the id of an operation or a conflict: an empty id would address the list.
    static func id(from text: String) throws -> String {
        guard !text.isEmpty else { throw ValidationError("the id is empty") }
        return text
    }

    /// A client of the server that these options, or else the usual places, lead to.
    func client() throws -> AdminClient {
        let environment = ProcessInfo.processInfo.environment
        let names = ["ROCKPOOL_SOCKET", "ROCKPOOL_STATE_DIR", "ROCKPOOL_ADMIN_SOCKET", "ROCKPOOL_STORAGE_STATE_DIR"]
        var configuration = try load().configuration
        // A directory that was named holds the socket, unless a socket was named too.
        let namesDirectory = stateDir != nil || environment["ROCKPOOL_STATE_DIR"] != nil
        if namesDirectory, socket == nil, environment["ROCKPOOL_SOCKET"] == nil { configuration.admin.socket = nil }
        let isNamed = config != nil || socket != nil || stateDir != nil || names.contains { environment[$0] != nil }
        return SocketSearch(configuration: configuration, isNamed: isNamed, environment: environment).client()
    }
}
