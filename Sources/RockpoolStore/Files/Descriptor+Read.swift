// Positioned reads: several readers can share one open file without moving each other's offset (docs/storage.md#what-is-stored-where).
import Glibc
import NIOCore

extension Descriptor {
    /// Reads exactly `count` bytes from `offset`.
    /// - Throws: `FileError`; EIO when the file ends earlier.
    borrowing func read(at offset: Int64, count: Int) throws(FileError) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(count)
        while buffer.readableBytes < count {
            let missing = count - buffer.readableBytes
            let position = off_t(offset) + off_t(buffer.readableBytes)
            var code: CInt = 0
            let got = unsafe buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: missing) { space in
                let got = unsafe pread(number, space.baseAddress, missing, position)
                code = got < 0 ? errno : EIO
                return max(0, got)
            }
            if got == 0 && code != EINTR { throw FileError(call: "read", path: path, code: code) }
        }
        return buffer
    }
}
