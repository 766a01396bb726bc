// Options shared by the commands: the configuration that locates the server, and the output format (docs/reference/cli.md#common-options).
import ArgumentParser
import Foundation
import RockpoolCore

/// `--config`, an option of every command.
struct CommonOptions: ParsableArguments {
    @Option(
        name: .long,
        help: "The configuration file. By default ~/.config/rockpool/rockpool.yaml if it exists, else the defaults are used.",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    /// Reads the configuration; warnings go to stderr. `flags` are the command's own options, by configuration key.
    func load(flags: [String: (flag: String, text: String)] = [:]) throws -> LoadedConfiguration {
        try Self.load(file: config, flags: flags)
    }

    static func load(file: String?, flags: [String: (flag: String, text: String)] = [:]) throws -> LoadedConfiguration {
        let environment = ProcessInfo.processInfo.environment
        let file = file ?? Directories.defaultFile(environment: environment)
        let loaded = try ConfigurationSources(file: file, environment: environment, flags: flags).load()
        for warning in loaded.warnings { Display.error.print("rockpool: warning: \(warning)") }
        return loaded
    }

    /// Checks the id of an operation or a conflict: an empty id would address the list.
    static func id(from text: String) throws -> String {
        guard !text.isEmpty else { throw ValidationError("the id is empty") }
        return text
    }

    /// A client of the server that uses this configuration.
    func client() throws -> AdminClient {
        AdminClient(stateDirectory: try load().configuration.storage.stateDir)
    }
}
