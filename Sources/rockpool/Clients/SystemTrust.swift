// The trust store of the system.
import Foundation
import RockpoolNetwork

/// Debian's store: a directory of local authorities, which a program run by root merges into one file.
struct SystemTrust: TrustStore {
    static let file = "/usr/local/share/ca-certificates/rockpool.crt"
    private static let bundle = "/etc/ssl/certs/ca-certificates.crt"

    let updater: Tool
    var kind: TrustStoreKind { .system }
    var place: String { Self.bundle }

    static var found: SystemTrust? { Tool("update-ca-certificates").map { SystemTrust(updater: $0) } }

    func holds(_ authority: AuthorityFiles) -> Bool {
        guard let own = try? String(contentsOfFile: authority.certificatePath, encoding: .utf8),
            let all = try? String(contentsOfFile: Self.bundle, encoding: .utf8)
        else { return false }
        let body = own.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
        return all.replacing("\n", with: "").contains(body)
    }

    func install(_ authority: AuthorityFiles) throws(CommandFailure) {
        try asRoot(["install", "-D", "-m", "644", authority.certificatePath, Self.file])
        try asRoot([updater.path])
    }

    func remove() throws(CommandFailure) {
        guard access(Self.file, F_OK) == 0 else { return }
        try asRoot(["rm", "-f", Self.file])
        try asRoot([updater.path, "--fresh"])
    }

    private func asRoot(_ command: [String]) throws(CommandFailure) {
        if geteuid() == 0, let tool = Tool("env") { return try tool.perform(command) }
        guard let sudo = Tool("sudo") else {
            throw CommandFailure(.failed, "only root can change \(place): run this again as root, with --config or the same HOME")
        }
        try sudo.perform(command)
    }
}
