// How shells set a variable.
import ArgumentParser
import RockpoolCore

/// The shells whose words we know.
enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, sh, fish, powershell

    /// The one in `SHELL`, else `sh`.
    init(environment: [String: String]) {
        let name = environment["SHELL"]?.split(separator: "/").last.map(String.init) ?? ""
        self = Shell(rawValue: name) ?? .sh
    }

    /// A line that sets and exports a variable.
    func export(_ name: String, _ value: String) -> String {
        switch self {
        case .bash, .zsh, .sh: "export \(name)=\(ShellWord.quote(value))"
        case .fish: "set -gx \(name) '\(value.escaping(["\\": "\\\\", "'": "\\'"]))'"
        case .powershell: "$env:\(name) = '\(value.escaping(["'": "''"]))'"
        }
    }
}
