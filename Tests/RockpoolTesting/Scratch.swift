// A directory of a test's own, and what `du` would say of one.
import Foundation

/// A temporary directory, mode 0700, removed with its last owner.
package final class Scratch: Sendable {
    /// Absolute, without a slash at its end; short, because sockets live in it (107 bytes at most).
    package let path: String

    /// Throws what creating a directory throws.
    package init() throws {
        path = "/tmp/rpt-" + UUID().uuidString.prefix(13).lowercased()
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a text below the directory and gives its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path + "/" + name))
        return path + "/" + name
    }
}

/// Files as a test looks at them.
package enum Files {
    /// The whole file. Throws when it cannot be read.
    package static func bytes(of path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    /// The whole file as text. Throws when it cannot be read.
    package static func text(of path: String) throws -> String { String(decoding: try bytes(of: path), as: UTF8.self) }

    /// Writes a file. Throws when it cannot be written.
    package static func write(_ bytes: [UInt8], to path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }

    /// Permission bits; nil when there is no such file.
    package static func mode(of path: String) -> Int? {
        (try? FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }

    /// Sets the permission bits. Throws when the file is not ours.
    package static func setMode(_ mode: Int, of path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    /// Names below a directory whose name starts with `prefix`.
    package static func names(in directory: String, startingWith prefix: String = "") -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).filter { $0.hasPrefix(prefix) }.sorted()
    }

    /// Every path below a directory.
    package static func everything(in directory: String) -> [String] {
        (FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []).map { directory + "/" + $0 }
    }

    /// Bytes that a directory and everything below it take on the disk, in blocks, as `du` counts them.
    package static func allocatedBytes(of directory: String) -> Int64 {
        everything(in: directory).reduce(allocated(directory)) { $0 + allocated($1) }
    }

    private static func allocated(_ path: String) -> Int64 {
        var info = stat()
        return lstat(path, &info) == 0 ? Int64(info.st_blocks) * 512 : 0
    }
}
