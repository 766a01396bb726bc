// The parts of a plain request that reads of different URLs have in common (docs/architecture.md#relays).

/// Where the path of a plain `GET` lies in its head. Requests of one shape are equal before the path and after the target.
package struct RequestShape: Sendable {
    /// Path and query.
    package let path: Range<Int>
    private let length: Int

    /// Nil for `HEAD`, for a request with a condition or a range, and for a path of Rockpool's own.
    package init?(of request: FastPathRequest, in bytes: Span<UInt8>) {
        guard !request.isHead, request.ifNoneMatch.isEmpty, request.ifModifiedSince.isEmpty, request.range.isEmpty else { return nil }
        var start = request.target.lowerBound
        if bytes[start] != UInt8(ascii: "/") {
            // The absolute form: the path follows the authority.
            start += Self.scheme.count
            while start < request.target.upperBound, !Self.endsAuthority(bytes[start]) { start += 1 }
            guard start < request.target.upperBound, bytes[start] == UInt8(ascii: "/") else { return nil }
        }
        path = start..<request.target.upperBound
        length = request.length
        if path.count >= Self.own.count, PlainFields.isEqual(bytes, at: start, to: Self.own) { return nil }
    }

    private static let scheme = Array("http://".utf8)
    private static let own = Array(RequestTarget.ownPath.utf8)

    private static func endsAuthority(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") }

    /// The bytes before the path.
    package var before: Range<Int> { 0..<path.lowerBound }
    /// The bytes after the target.
    package var after: Range<Int> { path.upperBound..<length }

    /// Feeds what requests of this shape have in common.
    package func hash(_ bytes: Span<UInt8>, into hasher: inout Hasher) {
        for range in [before, after] { unsafe bytes.extracting(range).withUnsafeBytes { unsafe hasher.combine(bytes: $0) } }
    }

    /// True for a request with these bytes before the path and after the target.
    package func isFor(before: [UInt8], after: [UInt8], in bytes: Span<UInt8>) -> Bool {
        PlainFields.isExactly(bytes, at: self.before, before) && PlainFields.isExactly(bytes, at: self.after, after)
    }
}
