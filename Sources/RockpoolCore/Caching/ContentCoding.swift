// The coding of stored content: which clients accept it unchanged, the head of the decoded response (RFC 9110 §8.4, §12.5.3), and the
// coding on disk.
import Glibc
package import HTTPTypes

/// The content codings of a stored response.
package enum ContentCoding {
    /// True if the content has a coding other than `identity`.
    static func isCoded(_ fields: HTTPFields) -> Bool {
        codings(in: fields).contains { $0 != "identity" }
    }

    /// True if the client of `request` accepts the content in its stored coding.
    package static func isAccepted(_ fields: HTTPFields, by request: RequestHead) -> Bool {
        AcceptEncoding.accepts(fields.value(of: "content-encoding") ?? "", value: request.fields.value(of: "accept-encoding"))
    }

    /// True if this cache can decode the content: a complete 200 in a single coding that is among `decodable`.
    package static func canBeDecoded(_ head: ResponseHead) -> Bool { head.status == 200 && isDecodable(head.fields) }

    /// True if the content has a single coding, which is among `decodable`.
    package static func isDecodable(_ fields: HTTPFields) -> Bool { single(in: fields).map(decodable.contains) ?? false }

    /// The coding of the content in lower case; nil if it has none, or several.
    package static func single(in fields: HTTPFields) -> String? {
        let codings = codings(in: fields)
        return codings.count == 1 ? codings[0] : nil
    }

    /// The codings that can be decoded, in lower case: `br` and `zstd` where their libraries are installed.
    package static let decodable: Set<String> = {
        let found = [("br", CodingLibrary.brotli), ("zstd", CodingLibrary.zstd)].filter { $0.1 != nil }.map(\.0)
        return Set(["gzip", "x-gzip", "deflate"] + found)
    }()

    /// The head of the same response with decoded content. Fields that describe the coded bytes are removed. A strong tag becomes weak,
    /// because it still identifies the version but no longer the bytes (RFC 9110 §8.8.1). `Vary` stays.
    package static func decoded(_ head: ResponseHead) -> ResponseHead {
        var decoded = ResponseHead(status: head.status)
        for field in head.fields where !ofCodedBytes.contains(field.name.canonicalName) { decoded.fields.append(field) }
        if let tag = decoded.fields.single(.eTag), tag.hasPrefix("\"") { decoded.fields[.eTag] = "W/" + tag }
        return decoded
    }

    /// In lower case, the first applied first.
    private static func codings(in fields: HTTPFields) -> [String] {
        FieldList.members(of: fields.value(of: "content-encoding") ?? "").map { $0.lowercased() }
    }

    private static let ofCodedBytes: Set<String> = [
        "content-encoding", "content-length", "content-md5", "content-digest", "repr-digest", "digest", "accept-ranges",
    ]
}

/// Values that list registered codings without weights, the form clients usually send (RFC 9110 §12.5.3).
enum AcceptEncoding {
    /// Sorted, so that the bits of a set yield the codings in order.
    private static let codings = ["br", "deflate", "gzip", "identity", "zstd"]
    /// The normal form of every set of codings, indexed by its bits.
    private static let normalForms: [String] = (0..<1 << codings.count).map { set in
        codings.indices.filter { set & 1 << $0 != 0 }.map { codings[$0] }.joined(separator: ", ")
    }

    /// The codings in sorted order; nil when the value needs the full parser.
    static func plain(_ value: String) -> String? {
        var set = 0
        var name: UInt64 = 0
        var length = 0
        var isEnded = false
        for byte in value.utf8 {
            switch byte {
            case FieldByte.comma:
                guard let bit = bit(name, length: length) else { return nil }
                set |= bit
                (name, length, isEnded) = (0, 0, false)
            case 0x20, 0x09: isEnded = length > 0
            default:
                guard !isEnded, length < 8 else { return nil }
                name = name << 8 | UInt64(FieldByte.lowercased(byte))
                length += 1
            }
        }
        guard let last = bit(name, length: length) else { return nil }
        return normalForms[set | last]
    }

    /// True if a client with this Accept-Encoding accepts content in `codings`. Without the field it accepts no coding, because a client
    /// that does not decode content sends no such field. Uncoded content is always accepted.
    static func accepts(_ codings: String, value: String?) -> Bool {
        let ranges = FieldList.members(of: value ?? "").map { member in
            member.split(separator: ";").map { FieldList.trimmed($0).lowercased() }
        }
        return FieldList.members(of: codings).allSatisfy { coding in
            let coding = coding.lowercased() == "x-gzip" ? "gzip" : coding.lowercased()
            if coding == "identity" { return true }
            let range =
                ranges.first { $0.first == coding || ($0.first == "x-gzip" && coding == "gzip") } ?? ranges.first { $0.first == "*" }
            guard let range else { return false }
            return !range.dropFirst().contains { $0 == "q=0" || ($0.hasPrefix("q=0.") && $0.dropFirst(4).allSatisfy { $0 == "0" }) }
        }
    }

    /// True if a client with this Accept-Encoding, in its normal form, accepts a coding other than `identity`.
    static func acceptsAny(_ value: String?) -> Bool {
        FieldList.members(of: value ?? "").contains { !$0.hasSuffix(";q=0") && $0 != "identity" && !$0.isEmpty }
    }

    /// The bit of a coding name, packed into an integer byte by byte; 0 for an empty member.
    private static func bit(_ name: UInt64, length: Int) -> Int? {
        switch name {
        case 0 where length == 0: 0
        case 0x6272: 1
        case 0x6465_666C_6174_65: 2
        case 0x677A_6970, 0x782D_677A_6970: 4
        case 0x6964_656E_7469_7479: 8
        case 0x7A73_7464: 16
        default: nil
        }
    }
}

/// One library of this machine with its functions (RFC 7932, RFC 8878). It is neither linked nor required: where it is not installed,
/// bodies in its coding are served only to clients that accept the coding.
package struct CodingLibrary: Sendable {
    /// Decodes `br`; nil where Debian's `libbrotli1`, or its like, is not installed.
    package static let brotli = CodingLibrary(
        "libbrotlidec.so.1", ["BrotliDecoderCreateInstance", "BrotliDecoderDecompressStream", "BrotliDecoderDestroyInstance"])
    /// Decodes `zstd`; nil where Debian's `libzstd1`, or its like, is not installed.
    package static let zstd = CodingLibrary(
        "libzstd.so.1",
        ["ZSTD_createDStream", "ZSTD_freeDStream", "ZSTD_decompressStream", "ZSTD_isError", "ZSTD_DCtx_setParameter"])

    private let addresses: [String: UInt]

    /// Nil if the library, or one of the functions, is not found.
    private init?(_ name: String, _ functions: [String]) {
        guard let library = unsafe dlopen(name, RTLD_NOW | RTLD_LOCAL) else { return nil }
        var found: [String: UInt] = [:]
        for function in functions {
            guard let symbol = unsafe dlsym(library, function) else { return nil }
            found[function] = UInt(bitPattern: symbol)
        }
        addresses = found
    }

    /// Returns a function of the library, which is one of those named above, as a C function of this type.
    package func function<F>(_ name: String, as type: F.Type) -> F { unsafe unsafeBitCast(addresses[name] ?? 0, to: type) }
}

// MARK: - On disk

/// Selects the bodies worth deflating. The client does not notice, because it receives the bytes that the origin sent
/// (docs/storage.md#what-is-stored-where, "At rest").
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
