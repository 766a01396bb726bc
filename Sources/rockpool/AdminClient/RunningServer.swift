// A running server as commands see it: its configuration and its places, which may differ from those of the caller
// (docs/reference/cli.md#calling).
import Foundation
import RockpoolCore
import RockpoolNetwork

/// The server that answers on the socket.
struct RunningServer: Sendable {
    let client: AdminClient
    let facts: ServerFactsReport
    let configuration: Configuration

    /// True if the server runs as the caller, so that the caller may change the files in its state directory.
    var isOwn: Bool {
        let attributes = try? FileManager.default.attributesOfItem(atPath: configuration.storage.stateDir)
        return (attributes?[.ownerAccountID] as? NSNumber)?.uint32Value == geteuid()
    }

    /// The files of its authority. Of another user's server they are a copy of the certificate, below the caller's data directory, beside
    /// which the caller's bundles are written.
    func authorityFiles(environment: [String: String]) async throws -> AuthorityFiles {
        if isOwn { return AuthorityFiles(stateDirectory: configuration.storage.stateDir) }
        let files = AuthorityFiles(stateDirectory: Directories.clientFiles(environment: environment))
        try FileManager.default.createDirectory(
            atPath: files.directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        do {
            let certificate = try await client.send(.get("/ca.pem"), timeout: .seconds(5)).body
            if FileManager.default.contents(atPath: files.certificatePath) != certificate {
                try certificate.write(to: URL(fileURLWithPath: files.certificatePath), options: .atomic)
            }
        } catch AdminFailure.refused(404, _, _) {
            try? FileManager.default.removeItem(atPath: files.certificatePath)
        }
        return files
    }
}

/// The members of `/v1/status` about the process.
struct ServerFactsReport: Decodable, Hashable, Sendable {
    var version: String?
    var configFile: String?
    var stateDir: String?
    var cacheDir: String?
    var dashboard: String?
}
