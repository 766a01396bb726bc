// SHA-256 of bodies and its text form.
import Crypto
import FoundationEssentials
import Glibc
import RockpoolCore

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
