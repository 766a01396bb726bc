// `rockpool proxy-password`: one line of the file of `proxy.auth` (docs/reference/cli.md#proxy-password).
import ArgumentParser
import Foundation
import RockpoolCore
import RockpoolStore

struct ProxyPasswordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "proxy-password", abstract: "Set or remove the password of a client of the proxy.",
        discussion: .examples(
            "rockpool proxy-password anna --file passwords",
            "echo secret | rockpool proxy-password anna --file passwords",
            after: "The password is read from the terminal, or from stdin: its first line. Only its hash is kept. A running server uses "
                + "the file as it is now, without a reload."), shouldDisplay: false)
    @Argument(help: "The name of the client.") var name: String
    @Option(name: .long, help: "The file; by default that of proxy.auth.", completion: .file()) var file: String?
    @Flag(name: .long, help: "Remove the name.") var remove = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        guard let path = try file ?? common.load().configuration.proxy.auth?.file else {
            throw CommandFailure(.configuration, "proxy.auth.file is not set; name the file with --file")
        }
        let lines = FileManager.default.fileExists(atPath: path) ? try Self.lines(of: path) : (text: "", names: [])
        guard NameAndPassword(name: name, password: "x") != nil else {
            throw CommandFailure(.usage, "a name is not empty and has no colon or control character")
        }
        if remove {
            guard lines.names.contains(name) else { throw CommandFailure(.failed, "\(path) does not name \(name)".inOneLine) }
            try write(PasswordLines.replacing(name, by: nil, in: lines.text), to: path)
            return Display.output.print("\(name) is removed from \(path)".inOneLine)
        }
        let password = try Self.password()
        guard NameAndPassword(name: name, password: password) != nil else {
            throw CommandFailure(.usage, "the password is empty, too long, or has a control character")
        }
        guard let hash = PasswordHash.make(of: password) else { throw CommandFailure(.failed, "no hash could be made") }
        try write(PasswordLines.replacing(name, by: hash, in: lines.text), to: path)
        Display.output.print("\(path) has the password of \(name)".inOneLine)
    }

    private static func lines(of path: String) throws -> (text: String, names: [String]) {
        do {
            return (String(decoding: try InputFile.contents(of: path), as: UTF8.self), try Array(PasswordBook.read(path).hashes.keys))
        } catch let error as PasswordLines.Fault {
            throw CommandFailure(.failed, "\(path): \(error)".inOneLine)
        }
    }

    /// A new file is readable by its owner only; an old one keeps its owner, group and mode.
    private func write(_ text: String, to path: String) throws {
        let old = try? FileManager.default.attributesOfItem(atPath: path)
        let new = try NewFile(path, replacing: true)
        do {
            try new.write(text)
            if let old {
                let kept = old.filter { [.posixPermissions, .ownerAccountID, .groupOwnerAccountID].contains($0.key) }
                try? FileManager.default.setAttributes(kept, ofItemAtPath: new.path)
            }
            try new.finish()
        } catch {
            new.discard()
            throw error
        }
    }

    /// From a terminal without showing it, twice; from a pipe the first line.
    private static func password() throws -> String {
        guard isatty(STDIN_FILENO) == 1 else { return readLine() ?? "" }
        let ask = { (question: String) -> String in String(cString: getpass(question)) }
        let first = ask("Password: ")
        guard first == ask("Again: ") else { throw CommandFailure(.failed, "the passwords differ; nothing has changed") }
        return first
    }
}
