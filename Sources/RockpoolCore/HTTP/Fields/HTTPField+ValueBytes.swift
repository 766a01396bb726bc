// A field's value as bytes, because not every value is UTF-8 (RFC 9110 §5.5).
package import HTTPTypes

extension HTTPField {
    /// The value as received.
    package var valueBytes: [UInt8] { unsafe withUnsafeBytesOfValue { unsafe Array($0) } }

    /// True if `value` may differ from the bytes: it contains the first byte of U+FFFD's encoding.
    package var mayBeLossy: Bool { value.utf8.contains(0xEF) }

    /// A text that is unique to the value: bytes that are not UTF-8 are listed as numbers.
    package var distinctValue: String {
        let bytes = valueBytes
        return String(validating: bytes, as: UTF8.self) ?? "bytes \(bytes)"
    }
}
