// The digest of a payload as it passes, to be compared with what a bundle says (ISO 28500:2017 §5.8).
import Crypto
package import NIOCore
package import RockpoolCore

/// Hashes what it is given, piece by piece.
package struct PayloadHash: Sendable {
    private enum State: Sendable {
        case sha1(Insecure.SHA1)
        case sha256(SHA256)
    }

    private var state: State

    /// Nothing hashed yet. SHA-1 guards against accidents only; other tools write it.
    package init(_ algorithm: PayloadDigest.Algorithm) {
        state = algorithm == .sha1 ? .sha1(Insecure.SHA1()) : .sha256(SHA256())
    }

    /// Takes the next bytes.
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

    /// The digest of everything so far.
    package var digest: PayloadDigest {
        switch state {
        case .sha1(let hash): PayloadDigest(.sha1, Array(hash.finalize()))
        case .sha256(let hash): PayloadDigest(.sha256, Array(hash.finalize()))
        }
    }
}
