// Whether a body is deflated before it is put on the disk (storage.md §3, "At rest").
import HTTPTypes

/// How a stored body lies on the disk. Raw values are those of the database.
package enum StoredCoding: Int, Hashable, Sendable {
    /// Byte for byte.
    case plain = 0
    /// As one zlib stream (RFC 1950); given back bit for bit.
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

/// What is worth deflating. The client never learns of it: it gets the bytes that the origin sent.
package enum AtRest {
    /// Bytes. What is smaller takes its place in a page of the database either way.
    package static let leastLength: Int64 = 1024

    /// Whether to try: a type that compresses, not yet encoded, and no longer than what memory keeps of a body once it has been read.
    /// Longer ones are served from their file by region, which must hold what goes out.
    package static func isWorthTrying(_ head: ResponseHead, length: Int64, upTo limit: Int64) -> Bool {
        guard length >= leastLength, length <= limit else { return false }
        let codings = head.fields[.contentEncoding].map { FieldList.trimmed($0[...]).lowercased() } ?? ""
        guard codings.isEmpty || codings == "identity", let type = head.fields.single(.contentType) else { return false }
        return isCompressible(FieldList.trimmed(type.prefix { $0 != ";" }).lowercased())
    }

    /// The most bytes that `length` may become: an eighth less, or it stays as it is.
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
