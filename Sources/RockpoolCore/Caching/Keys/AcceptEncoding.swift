// Fast normalisation of Accept-Encoding, the request field most often named in `Vary` (RFC 9110 §12.5.3).

/// Values that list registered codings without weights, the form clients usually send.
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
