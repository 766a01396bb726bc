// Options shared by the commands: the configuration, the place of the server, and the output format (docs/reference/cli.md#common-options).
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

/// The running server that the options of a command lead to (docs/reference/cli.md#calling).
extension CommonOptions {
    /// The server that answers; nil if none runs. Throws if one runs and cannot be asked.
    func running() async throws -> RunningServer? {
        let client = try client()
        let facts: ServerFactsReport
        do {
            facts = try await client.send(.get("/v1/status"), timeout: .seconds(5)).decoded()
        } catch let failure as AdminFailure where failure.isNotRunning {
            return nil
        }
        let configuration: Configuration
        do {
            let text = String(decoding: try await client.send(.get("/v1/configuration"), timeout: .seconds(5)).body, as: UTF8.self)
            configuration = try ConfigurationSources(environment: [:]).load(yaml: text, named: facts.configFile ?? "the server")
                .configuration
        } catch AdminFailure.refused {
            // An older server, which is run with the caller's configuration.
            configuration = try load().configuration
        }
        return RunningServer(client: client, facts: facts, configuration: configuration)
    }

    /// The configuration of the running server, or of the caller if none runs.
    func effective() async throws -> (configuration: Configuration, server: RunningServer?) {
        if let server = try await running() { return (server.configuration, server) }
        return (try load().configuration, nil)
    }
}

/// The output format of a reply.
enum Format: String, CaseIterable, ExpressibleByArgument {
    case table, json
}

/// `--config` and `--format`, options of every reading command.
struct ReadingOptions: ParsableArguments {
    @OptionGroup var common: CommonOptions
    @Option(name: .long, help: "table for people, json for programs.")
    var format: Format = .table

    /// Prints the server's reply, unchanged or as tables.
    func print<Report: TabularReport>(_ reply: AdminReply, as type: Report.Type) throws {
        switch format {
        case .json: Display.output.write(reply.body.withLineEnd)
        case .table: Display.output.print(try reply.decoded(as: type))
        }
    }
}

/// `--watch`, an option of the status commands.
struct WatchOptions: ParsableArguments {
    private static let pace = Duration.seconds(2)

    @Flag(name: .long, help: "Repeat every two seconds, until the server stops or Control-C is pressed.")
    var watch = false

    /// Prints the report once, or until a call fails.
    func looking(_ look: () async throws -> Void) async throws {
        let display = Display.output
        if watch, display.isTerminal { display.write("\u{1B}[2J") }
        while true {
            if watch, display.isTerminal { display.write("\u{1B}[H") }
            try await look()
            guard watch else { return }
            // Erase the remaining lines of a previous, longer report.
            if display.isTerminal { display.write("\u{1B}[J") }
            try await Task.sleep(for: Self.pace)
        }
    }
}

/// The candidates for an argument, which the completion script of a shell asks for (docs/reference/cli.md#commands).
enum Completions {
    /// The time after which a completion gives up, because the shell waits for it.
    private static let patience = TimeSpan.seconds(2)
    /// The most candidates.
    private static let most = "200"

    /// Ids of operations that have not ended.
    static var operations: CompletionKind { names(from: .get("/v1/operations", query: ["limit": most]), list: "items", member: "id") }
    /// Ids of conflicts, the newest first.
    static var conflicts: CompletionKind {
        names(from: .get("/v1/conflicts", query: ["limit": most, "state": "all"]), list: "items", member: "id")
    }
    /// Ids of identities.
    static var identities: CompletionKind { names(from: .get("/v1/identities", query: ["limit": most]), list: "items", member: "id") }
    /// Names of the declared upstreams.
    static var upstreams: CompletionKind { names(from: .get("/v1/status"), list: "upstreams", member: "name") }
    /// URLs that are stored.
    static var urls: CompletionKind { names(from: .get("/v1/cache", query: ["limit": most]), list: "items", member: "url") }
    /// The states of operations.
    static var states: CompletionKind { .list(OperationState.allCases.map(\.rawValue) + ["all"]) }

    /// Calls the server that the options on the command line name; without a server there are no candidates.
    private static func names(from call: AdminCall, list: String, member: String) -> CompletionKind {
        .custom { words, _, _ in
            let options = ["--config", "--socket", "--state-dir"].flatMap { name in
                words.lastIndex(of: name).flatMap { $0 + 1 < words.count ? [name, words[$0 + 1]] : nil } ?? []
            }
            guard let client = try? CommonOptions.parse(options).client(),
                let reply = try? await client.send(call, timeout: patience), let document = try? JSONValue.parse(Array(reply.body))
            else { return [] }
            return (document[list]?.array ?? []).compactMap { $0[member]?.string }
        }
    }
}

/// The examples in the help of a command (docs/reference/cli.md#commands). A test runs every one.
extension String {
    /// The heading above the examples in a help text.
    static let examplesHeading = "EXAMPLES"

    /// A part of a help text: `words`, then the examples, each as one line of at most 78 characters.
    static func examples(_ lines: String..., after words: String = "") -> String {
        let head = words.isEmpty ? "" : words + "\n\n"
        return head + examplesHeading + lines.map { "\n  " + $0 }.joined()
    }
}
