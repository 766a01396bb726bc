// `rockpool env --unset`: takes back what `rockpool env` has set (docs/reference/cli.md#env).
import Foundation
import RockpoolCore

extension ClientEnvironment {
    /// What becomes of each variable: a value that the user had before, or nil where it is removed.
    ///
    /// - Parameters:
    ///   - environment: The present variables.
    ///   - trust: Knows the files that ours were made from.
    ///   - direct: The hosts of `proxy.no_proxy`.
    static func undone(_ environment: [String: String], _ trust: TrustFiles, direct: [String]) -> [(name: String, value: String?)] {
        names.map { name in (name, environment[name].flatMap { before(name, value: $0, trust: trust, direct: direct) }) }
    }

    private static func before(_ name: String, value: String, trust: TrustFiles, direct: [String]) -> String? {
        let rest: String?
        switch name {
        case "no_proxy", "NO_PROXY": rest = hosts(in: value).filter { !direct.contains($0) }.joined(separator: ",")
        case "NODE_OPTIONS": rest = value.replacing(NodeAgent.option(trust.nodeAgentPath), with: "").trimmingCharacters(in: .whitespaces)
        case "PHP_INI_SCAN_DIR": rest = withoutPHP(trust.phpDirectory, in: value)
        case "JAVA_TOOL_OPTIONS": rest = withoutOurs(value).joined(separator: " ")
        case "SSL_CERT_FILE": rest = trust.chosen(by: name).flatMap { trust.systemBundles.contains($0) ? nil : $0 }
        case "WGETRC", "APT_CONFIG":
            rest = trust.chosen(by: name).flatMap { $0 == trust.usualWgetrc ? nil : $0 }
        default: rest = nil
        }
        return rest?.isEmpty == false ? rest : nil
    }
}
