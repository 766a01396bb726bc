// The checksum at the end of a pack of git (https://git-scm.com/docs/gitformat-pack).
import Crypto
package import NIOCore

/// SHA-1 of the bytes of a pack: not a protection, but part of the format.
package struct PackChecksum: Sendable {
    /// Its length in bytes.
    package static let length = 20

    private var hash = Insecure.SHA1()

    package init() {}

    package mutating func add(_ bytes: ByteBuffer) { hash.update(data: Array(bytes.readableBytesView)) }

    package func value() -> [UInt8] { Array(hash.finalize()) }
}
