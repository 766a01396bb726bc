// Partial file reads for bodies too large to be held in memory (docs/storage.md#what-is-stored-where).
import Glibc

extension FileBytes {
    /// Reads up to `count` bytes from `offset`; returns none at the end of the file.
    static func read(_ path: String, from offset: Int64, upTo count: Int) throws(FileError) -> [UInt8] {
        let file = try Descriptor(path, O_RDONLY)
        guard lseek(file.number, off_t(offset), SEEK_SET) >= 0 else { throw FileError(call: "lseek", path: path, code: errno) }
        var bytes = [UInt8](repeating: 0, count: count)
        let result = unsafe bytes.withUnsafeMutableBytes { buffer in Result { () throws(FileError) in try unsafe file.read(into: buffer) } }
        return Array(bytes.prefix(try result.get()))
    }
}
