// The parts of `multipart/byteranges` (RFC 9110 §14.6).

/// One part of a `multipart/byteranges` body.
package struct MultipartPart: Hashable, Sendable {
    /// The delimiter and the part's own header fields, up to and including the blank line.
    package let preamble: String
    /// The bytes that follow the preamble, as offsets into the stored body.
    package let range: Range<Int64>

    /// The length in bytes, including the preamble.
    package var length: Int64 { Int64(preamble.utf8.count).addedClamped(Int64(range.count)) }
}
