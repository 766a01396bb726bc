// SHA-256 of bodies and its text form.
import Crypto
import FoundationEssentials
import Glibc
package import NIOCore
package import RockpoolCore

/// Conversion of a SHA-256 digest to and from 64 hexadecimal digits.
enum Digest {
    static func hex(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns nil when the text is not 64 hexadecimal digits.
    static func bytes(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count == 64 else { return nil }
        return stride(from: 0, to: 64, by: 2).reduce(into: [UInt8]?([])) { bytes, at in
            guard let byte = UInt8(String(decoding: digits[at..<at + 2], as: UTF8.self), radix: 16) else { return bytes = nil }
            bytes?.append(byte)
        }
    }

    /// Returns the hash of a whole file.
    static func ofFile(_ path: String) throws(FileError) -> [UInt8] {
        let file = try Descriptor(path, O_RDONLY)
        var hash = SHA256()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: .kib(256), alignment: 16)
        defer { unsafe buffer.deallocate() }
        while true {
            let count = try unsafe file.read(into: buffer)
            if count == 0 { return hash.finalize().bytes }
            unsafe hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }
}

extension SHA256Digest {
    /// Its bytes. As a sequence, they are copied one by one.
    var bytes: [UInt8] { unsafe withUnsafeBytes { unsafe Array($0) } }
}

extension [UInt8] {
    /// The bytes as a SQLite BLOB.
    var data: Data { Data(self) }
}

/// An incremental payload hash (ISO 28500:2017 §5.8).
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
