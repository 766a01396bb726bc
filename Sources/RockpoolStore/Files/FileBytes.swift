// Reads whole files.
import Glibc

/// Reads of whole small files.
enum FileBytes {
    static func read(_ path: String) throws(FileError) -> [UInt8] {
        let file = try Descriptor(path, O_RDONLY)
        var bytes = [UInt8](repeating: 0, count: Int(clamping: FileStatus.of(descriptor: file.number)?.size ?? 0))
        var filled = 0
        while filled < bytes.count {
            let result = unsafe bytes.withUnsafeMutableBytes { buffer in
                Result { () throws(FileError) in try unsafe file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])) }
            }
            let count = try result.get()
            if count == 0 { break }
            filled += count
        }
        return Array(bytes.prefix(filled))
    }
}
