// Failed system calls on files.
import Glibc

/// A failed system call; `code` is its errno.
package struct FileError: Error, Equatable, CustomStringConvertible {
    package var call: String
    package var path: String
    package var code: CInt

    package var description: String { unsafe "\(path): \(String(cString: strerror(code))) (\(call))" }

    /// True if the file system is full or the user's quota is used up.
    package var saysFull: Bool { code == ENOSPC || code == EDQUOT }
}
