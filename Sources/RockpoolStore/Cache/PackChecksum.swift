// The checksum at the end of a pack of git (https://git-scm.com/docs/gitformat-pack).
import Crypto
package import NIOCore

/// The digest of the bytes of a pack, by the function that names the repository's objects: not a protection, but part of the format.
package struct PackChecksum: Sendable {
    private var hash: any HashFunction & Sendable

    package init(usesSHA256: Bool) { hash = usesSHA256 ? SHA256() : Insecure.SHA1() }

    /// Its length in bytes.
    package static func length(usesSHA256: Bool) -> Int { usesSHA256 ? SHA256.byteCount : Insecure.SHA1.byteCount }

    package mutating func add(_ bytes: ByteBuffer) { hash.update(data: Array(bytes.readableBytesView)) }

    package func value() -> [UInt8] { Self.digest(of: hash) }

    private static func digest(of hash: some HashFunction) -> [UInt8] { Array(hash.finalize()) }
}
