// Decides whether a body is deflated before it is stored on disk (docs/storage.md#what-is-stored-where, "At rest").
import HTTPTypes

/// Selects the bodies worth deflating. The client does not notice, because it receives the bytes that the origin sent.
package enum AtRest {
    /// Bytes. A smaller body occupies a database page either way.
    package static let leastLength: Int64 = .kib(1)
    /// Bytes. A longer body is sent directly from regions of its file, which must therefore contain the original bytes.
    package static let mostLength: Int64 = .mib(1)

    /// True if deflating should be tried: a compressible type, not yet encoded, and of `leastLength` to `mostLength` bytes, however many of them
    /// fit into memory.
    package static func isWorthTrying(_ head: ResponseHead, length: Int64) -> Bool {
        guard (leastLength...mostLength).contains(length) else { return false }
        let codings = head.fields[.contentEncoding].map { FieldList.trimmed($0[...]).lowercased() } ?? ""
        guard codings.isEmpty || codings == "identity", let type = head.fields.single(.contentType) else { return false }
        return isCompressible(FieldList.trimmed(type.prefix { $0 != ";" }).lowercased())
    }

    /// True if a body begins like random, encrypted or packed bytes, whatever its type says: deflating them takes long and saves nothing. Of 256
    /// random bytes, 162 are different, of text at most half as many.
    package static func isDense(_ body: [UInt8]) -> Bool {
        guard body.count >= 256 else { return false }
        var isSeen = [Bool](repeating: false, count: 256)
        for byte in body.prefix(256) { isSeen[Int(byte)] = true }
        return isSeen.count { $0 } > 136
    }

    /// The maximum deflated size of `length` bytes: an eighth less, else the body is stored unchanged.
    package static func most(_ length: Int64) -> Int64 { length - length / 8 }

    private static func isCompressible(_ essence: String) -> Bool {
        if essence.hasPrefix("text/") || ["+json", "+xml", "+yaml", "json-seq"].contains(where: essence.hasSuffix) { return true }
        return [
            "application/json", "application/javascript", "application/x-javascript", "application/ecmascript", "application/xml",
            "application/x-ndjson", "application/yaml", "application/wasm", "application/rtf", "application/sql", "application/graphql",
            "application/x-www-form-urlencoded", "application/vnd.ms-fontobject", "font/ttf", "font/otf", "image/bmp", "image/x-icon",
            "image/vnd.microsoft.icon",
        ].contains(essence)
    }
}

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
