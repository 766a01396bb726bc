// A test's temporary directory, and the disk usage of a directory as `du` reports it.
import Foundation

/// A temporary directory with mode 0700, removed when its last owner is released.
package final class Scratch: Sendable {
    /// The absolute path without a trailing slash; short, because the directory holds sockets (107 bytes at most).
    package let path: String

    /// Creates the directory. Rethrows the error of creating it.
    package init() throws {
        path = "/tmp/rpt-" + UUID().uuidString.prefix(13).lowercased()
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a text file below the directory and returns its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path + "/" + name))
        return path + "/" + name
    }
}

/// File operations of the tests.
package enum Files {
    /// Returns the whole file. Throws when the file cannot be read.
    package static func bytes(of path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    /// Returns the whole file as text. Throws when the file cannot be read.
    package static func text(of path: String) throws -> String { String(decoding: try bytes(of: path), as: UTF8.self) }

    /// Writes a file. Throws when the file cannot be written.
    package static func write(_ bytes: [UInt8], to path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }

    /// Returns the permission bits; nil when there is no such file.
    package static func mode(of path: String) -> Int? {
        (try? FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }

    /// Sets the permission bits. Throws when the file belongs to another user.
    package static func setMode(_ mode: Int, of path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    /// Returns the names in a directory that start with `prefix`.
    package static func names(in directory: String, startingWith prefix: String = "") -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).filter { $0.hasPrefix(prefix) }.sorted()
    }

    /// Returns every path below a directory.
    package static func everything(in directory: String) -> [String] {
        (FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []).map { directory + "/" + $0 }
    }

    /// Returns the disk blocks, in bytes, allocated for a directory and everything below it, as `du` counts them.
    package static func allocatedBytes(of directory: String) -> Int64 {
        everything(in: directory).reduce(allocated(directory)) { $0 + allocated($1) }
    }

    private static func allocated(_ path: String) -> Int64 {
        var info = stat()
        return lstat(path, &info) == 0 ? Int64(info.st_blocks) * 512 : 0
    }
}
