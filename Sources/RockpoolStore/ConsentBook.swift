// The files that a user has agreed to, each with the digest of what was agreed to (docs/reference/cli.md#config-trust).
import Crypto
import RockpoolCore

/// Consents of one user, in a file of mode 0600 in a state directory. A consent holds for one path and exactly the bytes that it had.
package struct ConsentBook: Sendable {
    private static let name = "trusted-files"

    private let directory: String
    private var path: String { "\(directory)/\(Self.name)" }

    /// - Parameter stateDirectory: the directory, which `add` creates if it is missing.
    package init(stateDirectory: String) { directory = stateDirectory }

    /// True if the user has agreed to these bytes at that path. False for a book that others may read or that cannot be read.
    package func holds(_ path: String, bytes: [UInt8]) -> Bool { (try? read())?[path]?.string == Self.digest(bytes) }

    /// Notes a consent, in place of an earlier one for the path.
    /// - Throws: `DataStoreError.readableByOthers`, `FileError`.
    package func add(_ path: String, bytes: [UInt8]) throws {
        try Paths.makeDirectories(directory)
        try write(entries().filter { $0.0 != path } + [(path, .string(Self.digest(bytes)))])
    }

    /// Withdraws a consent.
    /// - Returns: false if there is none.
    /// - Throws: `DataStoreError.readableByOthers`, `FileError`.
    package func remove(_ path: String) throws -> Bool {
        let (before, after) = (try entries(), try entries().filter { $0.0 != path })
        guard after.count < before.count else { return false }
        try write(after)
        return true
    }

    private func entries() throws -> [(String, JSONValue)] {
        guard let object = try read() else { return [] }
        return object.names.compactMap { name in object[name].map { (name, $0) } }
    }

    /// The digests by path; nil without a file, or with one that is damaged.
    private func read() throws -> JSONObject? {
        guard FileStatus.of(path) != nil else { return nil }
        return try JSONValue.parse(Array(PrivateFile.text(path).utf8)).object
    }

    private func write(_ entries: [(String, JSONValue)]) throws {
        try Paths.replace(Self.name, in: directory, by: JSONValue.object(JSONObject(entries)).serialized())
    }

    private static func digest(_ bytes: [UInt8]) -> String { Digest.hex(SHA256.hash(data: bytes).bytes) }
}
