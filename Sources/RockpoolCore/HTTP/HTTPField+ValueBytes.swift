// A field's value as bytes: not every value is UTF-8 (RFC 9110 §5.5).
package import HTTPTypes

extension HTTPField {
    /// The value as it was on the wire.
    package var valueBytes: [UInt8] { unsafe withUnsafeBytesOfValue { unsafe Array($0) } }

    /// Whether `value` may differ from the bytes: it holds what U+FFFD begins with.
    package var mayBeLossy: Bool { value.utf8.contains(0xEF) }

    /// The value as a text that no other value has: bytes that are not UTF-8 are written out.
    package var distinctValue: String {
        let bytes = valueBytes
        return String(validating: bytes, as: UTF8.self) ?? "bytes \(bytes)"
    }
}
