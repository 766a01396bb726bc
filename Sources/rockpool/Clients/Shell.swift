// The syntax with which each shell sets a variable.
import ArgumentParser
import RockpoolCore

/// The supported shells.
enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, sh, fish, powershell

    /// The shell named in `SHELL`, else `sh`.
    init(environment: [String: String]) {
        let name = environment["SHELL"]?.split(separator: "/").last.map(String.init) ?? ""
        self = Shell(rawValue: name) ?? .sh
    }

    /// A line that removes a variable.
    func unset(_ name: String) -> String {
        switch self {
        case .bash, .zsh, .sh: "unset \(name)"
        case .fish: "set -e \(name)"
        case .powershell: "Remove-Item Env:\(name) -ErrorAction SilentlyContinue"
        }
    }

    /// A line that sets and exports a variable.
    func export(_ name: String, as value: String) -> String {
        switch self {
        case .bash, .zsh, .sh: "export \(name)=\(ShellWord.quote(value))"
        case .fish: "set -gx \(name) '\(value.escaping(["\\": "\\\\", "'": "\\'"]))'"
        case .powershell: "$env:\(name) = '\(value.escaping(["'": "''"]))'"
        }
    }
}
