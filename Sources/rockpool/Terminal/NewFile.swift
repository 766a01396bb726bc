// A file that is written as a whole or not at all.
import Foundation

/// A file that is either complete or absent: written beside its target, readable by its owner only.
final class NewFile: Sendable {
    let handle: FileHandle
    private let target: String
    /// The file beside it that is written.
    let path: String
    private let isReplacing: Bool

    /// - Throws: a failure if the file exists and may not be replaced, or if it cannot be made.
    init(_ path: String, replacing: Bool) throws(CommandFailure) {
        (target, isReplacing, self.path) = (path, replacing, "\(path).part-\(getpid())")
        guard replacing || access(path, F_OK) != 0 else { throw .isThere(path) }
        let descriptor = open(self.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw CommandFailure(.failed, "\(path) cannot be written: \(String(cString: strerror(errno)))".inOneLine)
        }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Renames the file to its final name; a file that was created meanwhile is only replaced if `isReplacing`.
    func finish() throws {
        try handle.synchronize()
        try handle.close()
        if isReplacing {
            guard rename(path, target) == 0 else { throw CommandFailure(.failed, "\(target) cannot be written".inOneLine) }
            return
        }
        guard link(path, target) == 0 else { throw CommandFailure.isThere(target) }
        unlink(path)
    }

    /// Removes the temporary file.
    func discard() { unlink(path) }
}

extension CommandFailure {
    fileprivate static func isThere(_ path: String) -> CommandFailure {
        CommandFailure(.failed, "\(path) already exists; add --force to replace it".inOneLine)
    }
}
