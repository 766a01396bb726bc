// A field's value as bytes: not every value is UTF-8 (RFC 9110 §5.5).
package import HTTPTypes

extension HTTPField {
    /// The value as it was on the wire.
    package var valueBytes: [UInt8] { unsafe withUnsafeBytesOfValue { unsafe Array($0) } }
}
