// The codings of stored bodies.

/// The coding of a stored body. Raw values are those of the database.
package enum StoredCoding: Int, Hashable, Sendable {
    /// Byte for byte.
    case plain = 0
    /// One zlib stream (RFC 1950); restored bit for bit.
    case deflated = 1
    /// Sealed (`storage.encrypt`).
    case sealed = 2
    /// Deflated, then sealed.
    case sealedDeflated = 3

    package var isSealed: Bool { self == .sealed || self == .sealedDeflated }
    package var isDeflated: Bool { self == .deflated || self == .sealedDeflated }

    /// The same, and sealed.
    package var sealing: StoredCoding { isDeflated ? .sealedDeflated : .sealed }
}
