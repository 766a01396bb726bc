// Incremental digest of a payload, compared with the digest recorded in a bundle (ISO 28500:2017 §5.8).
import Crypto
package import NIOCore
package import RockpoolCore

/// An incremental payload hash.
package struct PayloadHash: Sendable {
    private enum State: Sendable {
        case sha1(Insecure.SHA1)
        case sha256(SHA256)
    }

    private var state: State

    /// Creates an empty hash. SHA-1 protects only against accidental damage and is supported because other tools write it.
    package init(_ algorithm: PayloadDigest.Algorithm) {
        state = algorithm == .sha1 ? .sha1(Insecure.SHA1()) : .sha256(SHA256())
    }

    /// Hashes the next bytes.
    package mutating func update(_ bytes: ByteBuffer) {
        unsafe bytes.withUnsafeReadableBytes { bytes in
            switch state {
            case .sha1(var hash):
                unsafe hash.update(bufferPointer: bytes)
                state = .sha1(hash)
            case .sha256(var hash):
                unsafe hash.update(bufferPointer: bytes)
                state = .sha256(hash)
            }
        }
    }

    /// The digest of all bytes so far.
    package var digest: PayloadDigest {
        switch state {
        case .sha1(let hash): PayloadDigest(.sha1, Array(hash.finalize()))
        case .sha256(let hash): PayloadDigest(.sha256, Array(hash.finalize()))
        }
    }
}
