// Serialised header fields of a row, length-prefixed to preserve order, case and raw bytes (RFC 9110 §5).
import FoundationEssentials
import HTTPTypes
import RockpoolCore

/// Encodes header fields as bytes: a version byte, then name and value of each field, with lengths as LEB128.
enum FieldCodec {
    private static let version: UInt8 = 1

    static func encode(_ fields: HTTPFields) -> Data {
        var bytes: [UInt8] = [version]
        for field in fields {
            append(Array(field.name.rawName.utf8), to: &bytes)
            append(field.valueBytes, to: &bytes)
        }
        return Data(bytes)
    }

    /// Returns the approximate number of bytes that `encode` makes.
    static func length(of fields: HTTPFields) -> Int64 {
        fields.reduce(1) { $0 + Int64($1.name.rawName.utf8.count + $1.value.utf8.count) + 2 }
    }

    /// Decodes bytes produced by `encode`; nil for any other bytes.
    static func decode(_ data: Data) -> HTTPFields? {
        var bytes = Array(data)[...]
        guard bytes.popFirst() == version else { return nil }
        var fields = HTTPFields()
        while !bytes.isEmpty {
            guard let name = part(of: &bytes), let value = part(of: &bytes),
                let fieldName = HTTPField.Name(String(decoding: name, as: UTF8.self))
            else { return nil }
            fields.append(HTTPField(name: fieldName, lenientValue: value))
        }
        return fields
    }

    private static func append(_ part: [UInt8], to bytes: inout [UInt8]) {
        var length = part.count
        while length >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: length) | 0x80)
            length >>= 7
        }
        bytes.append(UInt8(length))
        bytes += part
    }

    private static func part(of bytes: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        var length = 0
        var shift = 0
        while true {
            guard let byte = bytes.popFirst(), shift <= 28 else { return nil }
            length |= Int(byte & 0x7F) << shift
            if byte < 0x80 { break }
            shift += 7
        }
        guard length <= bytes.count else { return nil }
        defer { bytes = bytes.dropFirst(length) }
        return bytes.prefix(length)
    }
}
