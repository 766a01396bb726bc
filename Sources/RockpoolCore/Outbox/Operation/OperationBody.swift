// The body of an operation (docs/outbox.md#schema).

/// The body of an operation: in its row, or a file of `blobs/` named by its SHA-256.
package enum OperationBody: Hashable, Sendable {
    case none
    case inline([UInt8])
    case blob(sha256: String, length: Int64)

    /// The body that lies in the row; empty without one.
    package var inlineBytes: [UInt8] { if case .inline(let bytes) = self { bytes } else { [] } }

    /// Bytes of the body.
    package var length: Int64 {
        switch self {
        case .none: 0
        case .inline(let bytes): Int64(bytes.count)
        case .blob(_, let length): length
        }
    }
}
