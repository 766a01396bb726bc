// The clean-stop mark of a store: written last on close, removed first on open (docs/storage.md#database-rules *quick_check*).
import Glibc

/// The empty file `clean` in a store's directory. An empty log is no proof of a clean stop: a kill right after a checkpoint leaves one too.
struct CleanShutdownMarker: Sendable {
    let directory: String
    private var path: String { "\(directory)/clean" }

    /// Removes the mark, so that a later kill is detected at the next start.
    /// - Returns: true if the mark was present.
    func take() throws(FileError) -> Bool {
        guard FileStatus.of(path) != nil else { return false }
        guard Paths.remove(path) else { throw FileError(call: "unlink", path: path, code: errno) }
        try Paths.synchronizeDirectory(directory)
        return true
    }

    /// Creates the mark again, after everything else has been written.
    func leave() throws(FileError) {
        try Descriptor(path, O_WRONLY | O_CREAT).synchronize()
        try Paths.synchronizeDirectory(directory)
    }
}
