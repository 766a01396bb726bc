// The first entry of a backup: its contents with their sums (docs/storage.md#backup).
import FoundationEssentials

/// The contents of a backup.
package struct BackupManifest: Codable, Hashable, Sendable {
    package struct File: Codable, Hashable, Sendable {
        package var name: String
        package var bytes: Int64
        package var sha256: String
    }

    static let name = "manifest.json"
    /// The form of the archive.
    static let currentFormat = 1

    package var format: Int
    /// The version of the program that made it.
    package var version: String
    /// The schema of `data.sqlite`.
    package var schema: Int
    package var createdAt: String
    /// True if it holds the certificate authority and the admin token.
    package var keys: Bool
    package var files: [File]

    /// The names that a restore writes: nothing else of an archive reaches the disk.
    static func isKnown(_ name: String) -> Bool {
        if ["data.sqlite", "install-key", "network.json", "admin-token", "ca/ca.key", "ca/ca.pem", "rockpool.yaml"].contains(name) {
            return true
        }
        if name.hasPrefix("blobs/") { return Digest.bytes(String(name.dropFirst(6))) != nil }
        return name.hasPrefix("purged-") && name.hasSuffix(".jsonl") && !name.contains("/")
    }
}
