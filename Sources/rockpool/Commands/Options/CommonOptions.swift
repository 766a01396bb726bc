// Options shared by the commands: the configuration, the place of the server, and the output format
// (docs/reference/cli.md#common-options).
import ArgumentParser
import Foundation
import Logging
import RockpoolCore
import RockpoolStore
import Synchronization

/// `--config`, `--socket` and `--state-dir`, options of every command.
struct CommonOptions: ParsableArguments {
    @Option(
        name: .long,
        help: "The configuration file. By default ~/.config/rockpool/rockpool.yaml; for serve and config ./rockpool.yaml comes first.",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?
    @Option(name: .long, help: "The server's Unix socket (admin.socket).", completion: .file())
    var socket: String?
    @Option(name: .long, help: "The server's directory of the outbox (storage.state_dir).", completion: .directory)
    var stateDir: String?
    /// The lines that this process has printed: a command may read the configuration several times.
    private static let said = Mutex<Set<String>>([])

    /// The file of the configuration, which may not exist if it is named; nil without one.
    var file: String? { config ?? Directories.defaultFile(environment: ProcessInfo.processInfo.environment) }

    /// Reads the configuration; warnings go to stderr. Where root has no file, that of the service counts.
    func load() throws -> LoadedConfiguration {
        let loaded = try read(file: file ?? (geteuid() == 0 ? Directories.serviceFile : nil))
        say(loaded)
        return loaded
    }

    /// As `load`, for the commands that also read the file of the working directory, which is named on stderr.
    /// - Parameter named: The file in place of that of `--config`.
    func loadInFolder(named: String? = nil) throws -> LoadedConfiguration {
        let loaded = try readInFolder(named: named)
        say(loaded)
        return loaded
    }

    /// As `loadInFolder`, but of a good configuration nothing is printed yet: `say` does that.
    /// - Parameters:
    ///   - flags: The command's own options, by configuration key.
    ///   - failing: Called with the error of a bad configuration before anything is printed of it.
    func readInFolder(
        named: String? = nil, flags: [String: (flag: String, text: String)] = [:], failing: (ConfigurationError) -> Void = { _ in }
    ) throws -> LoadedConfiguration {
        let found = named == nil && config == nil ? Directories.workingFile : nil
        do {
            guard let found else { return try read(file: named ?? file, flags: flags) }
            let consents = ConsentBook(environment: ProcessInfo.processInfo.environment)
            var loaded = try read(file: found, flags: flags, consents: consents)
            loaded.isFound = true
            return loaded
        } catch {
            if let error = error as? ConfigurationError { failing(error) }
            if let found { sayFound(found) }
            throw error
        }
    }

    private func read(
        file: String?, flags: [String: (flag: String, text: String)] = [:], consents: ConsentBook? = nil
    ) throws -> LoadedConfiguration {
        let environment = ProcessInfo.processInfo.environment
        let flags = flags.merging(places(environment: environment)) { own, _ in own }
        var loaded = try ConfigurationSources(file: file, environment: environment, consents: consents, flags: flags).load()
        loaded.file = file
        SecretParameters.add(loaded.configuration.secrets)
        return loaded
    }

    /// Prints what is to be known of a configuration on stderr, each line once for each process.
    func say(_ loaded: LoadedConfiguration) {
        if loaded.isFound, let file = loaded.file { sayFound(file) }
        for warning in loaded.warnings { say(warning, level: .warning) }
    }

    private func sayFound(_ file: String) { say("configuration \(file), found in the working directory") }

    /// Prints a line on stderr, once for each process.
    func say(_ line: String, level: Logger.Level = .notice) {
        guard Self.said.withLock({ $0.insert(line).inserted }) else { return }
        LogOutput.standardError.announce(line, level: level)
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
