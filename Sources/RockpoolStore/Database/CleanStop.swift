// How a store knows at its start whether it was closed: a mark written last, and taken away first (storage.md §6 *quick_check*).
import Glibc

/// The empty file `clean` in a store's directory. An empty log alone says little: a kill right after a checkpoint leaves one too.
struct CleanStop: Sendable {
    let directory: String
    private var path: String { "\(directory)/clean" }

    /// Takes the mark away, so that a kill from now on is seen.
    /// - Returns: whether it was there.
    func take() throws(FileError) -> Bool {
        guard FileStatus.of(path) != nil else { return false }
        guard Paths.remove(path) else { throw FileError(call: "unlink", path: path, code: errno) }
        try Paths.synchronizeDirectory(directory)
        return true
    }

    /// Puts it back, after everything else has been written.
    func leave() throws(FileError) {
        try Descriptor(path, O_WRONLY | O_CREAT).synchronize()
        try Paths.synchronizeDirectory(directory)
    }
}
