// A change of the configuration file of the running server, wherever it runs (docs/reference/cli.md#add, docs/reference/cli.md#remove).
import Foundation
import RockpoolCore

/// The file that `add` and `remove` change, and the server that reads it.
struct ConfigurationChange {
    let edit: ConfigurationEdit
    /// The configuration in the file, without variables and options.
    let before: Configuration
    /// The running server; nil if none runs.
    let server: RunningServer?

    var file: String { edit.file }

    init(_ common: CommonOptions) async throws {
        let server = try await common.running()
        let file = try Self.file(of: server, besides: common)
        edit = try Self.advising { () throws(CommandFailure) in try ConfigurationEdit(file: file) }
        before = try ConfigurationSources(file: access(file, F_OK) == 0 ? file : nil, environment: [:]).load().configuration
        self.server = server
    }

    /// The file of the running server, else the one of the next start.
    private static func file(of server: RunningServer?, besides common: CommonOptions) throws -> String {
        let ownFile = Directories.userFile(environment: ProcessInfo.processInfo.environment)
        guard let server else { return common.file ?? ownFile }
        if let file = server.facts.configFile { return file }
        // A server that was started without a file reads the user's with the next reload.
        guard server.isOwn else {
            throw CommandFailure(.failed, "the server of another user runs without a configuration file; start it with one")
        }
        return ownFile
    }

    /// Checks that this user may change the file.
    func checkWritable() throws(CommandFailure) { try Self.advising(edit.checkWritable) }

    /// Prints the file and the lines that change, each behind a mark.
    func show(_ lines: [String], mark: String) {
        Display.output.print("\(file):".inOneLine)
        for line in lines { Display.output.print("\(mark) \(line)".inOneLine) }
    }

    /// Writes the file and has the server read it. If the server does not take it, it is put back as it was.
    func apply(_ text: String) async throws {
        try Self.advising { () throws(CommandFailure) in try edit.write(text) }
        try await server?.client.reload(after: edit)
    }

    /// Names the same command with the rights of root where this user has too few.
    private static func advising<Value>(_ step: () throws(CommandFailure) -> Value) throws(CommandFailure) -> Value {
        do { return try step() } catch {
            guard geteuid() != 0 else { throw error }
            let words = CommandLine.arguments.dropFirst().map { word in
                word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-._~:/=@%+".contains($0)) } ? word : ShellWord.quote(word)
            }
            throw CommandFailure(error.status, "\(error.message); run: sudo rockpool \(words.joined(separator: " "))".inOneLine)
        }
    }
}

extension AdminClient {
    /// Has the server read its configuration again after a change of its file. If it does not take it, the file is put back as it was.
    func reload(after edit: ConfigurationEdit) async throws {
        do { _ = try await send(.post("/v1/reload")) } catch {
            try edit.write(edit.text)
            throw CommandFailure(.failed, "nothing is changed: \(error)".inOneLine)
        }
    }
}
