// The bytes of an operation's body.

/// The content of an operation's body, ready for sending.
package enum OperationContent: Sendable {
    case bytes([UInt8])
    case file(path: String, length: Int64)
    case sealed(SealedFile)

    /// Returns the whole content. - Throws: `FileError`, `SealBroken`.
    package func bytes() throws -> [UInt8] {
        switch self {
        case .bytes(let bytes): bytes
        case .file(let path, _): try FileBytes.read(path)
        case .sealed(let file): try file.bytes()
        }
    }
}
