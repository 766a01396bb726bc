// A file that is written as a whole or not at all.
import Foundation

/// A file that is either complete or absent: written beside its target, readable by its owner only.
final class NewFile: Sendable {
    private let handle: FileHandle
    private let target: String
    /// The file beside it that is written.
    let path: String
    private let isReplacing: Bool

    /// - Throws: a failure if the file exists and may not be replaced, or if it cannot be made.
    init(_ path: String, replacing: Bool) throws(CommandFailure) {
        (target, isReplacing, self.path) = (path, replacing, "\(path).part-\(getpid())")
        guard replacing || access(path, F_OK) != 0 else { throw .isThere(path) }
        let descriptor = open(self.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .cannotWrite(to: path) }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Writes the next bytes. Throws a failure with the reason, such as a full disk.
    func write(_ bytes: UnsafeRawBufferPointer) throws(CommandFailure) { try handle.write(bytes, named: target) }

    /// Writes a text as UTF-8.
    func write(_ text: String) throws { try handle.write(text, named: target) }

    /// Renames the file to its final name; a file that was created meanwhile is only replaced if `isReplacing`.
    func finish() throws(CommandFailure) {
        guard fsync(handle.fileDescriptor) == 0 else { throw .cannotWrite(to: target) }
        if isReplacing {
            guard rename(path, target) == 0 else { throw .cannotWrite(to: target) }
            return
        }
        guard link(path, target) == 0 else { throw .isThere(target) }
        unlink(path)
    }

    /// Removes the temporary file.
    func discard() { unlink(path) }
}

extension FileHandle {
    /// Writes all bytes. Throws a failure with the name of the file and the reason.
    func write(_ bytes: UnsafeRawBufferPointer, named name: String) throws(CommandFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Foundation.write(fileDescriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .cannotWrite(to: name) }
            rest = rest.dropFirst(count)
        }
    }

    /// Writes a text as UTF-8. Throws a failure with the name of the file and the reason.
    func write(_ text: String, named name: String) throws {
        try Array(text.utf8).withUnsafeBytes { try write($0, named: name) }
    }
}

extension CommandFailure {
    fileprivate static func isThere(_ path: String) -> CommandFailure {
        CommandFailure(.failed, "\(path) already exists; add --force to replace it".inOneLine)
    }

    /// The failure of the last system call on a file.
    static func cannotWrite(to path: String) -> CommandFailure {
        CommandFailure(.failed, "\(path) cannot be written: \(String(cString: strerror(errno)))".inOneLine)
    }
}
