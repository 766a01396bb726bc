// A plain request and the listener it arrived at (docs/architecture.md#parts *memory tier*).
package import NIOCore
package import RockpoolCore

/// A plain request together with the buffer that contains it.
package struct PlainArrival: Sendable {
    package let request: FastPathRequest
    /// The `host:port` of the listener: the same bytes may mean another resource at another listener.
    package let listener: String
    /// The digest of the credential; nil without one.
    package let credential: CredentialDigest?
    /// Readable from the request's first byte.
    private let bytes: ByteBuffer

    package init(_ request: FastPathRequest, in bytes: ByteBuffer, listener: String, credential: CredentialDigest?) {
        self.request = request
        self.bytes = bytes
        self.listener = listener
        self.credential = credential
    }

    /// A copy with a buffer of its own: the receive buffer is soon reused.
    package var kept: PlainArrival {
        PlainArrival(request, in: ByteBuffer(bytes: self[0..<request.length]), listener: listener, credential: credential)
    }

    package subscript(range: Range<Int>) -> [UInt8] { Array(bytes.readableBytesView.dropFirst(range.lowerBound).prefix(range.count)) }

    /// Returns the value of the field with this lower-case name: nil when it is absent, empty when it occurs more than once.
    func value(of name: [UInt8]) -> [UInt8]? { request.value(of: name, in: bytes.readableBytesUInt8Span).map { self[$0] } }

    func contains(_ name: [UInt8]) -> Bool { request.value(of: name, in: bytes.readableBytesUInt8Span) != nil }

    /// True if the bytes at `range` are `expected`.
    func holds(_ expected: [UInt8], at range: Range<Int>) -> Bool {
        guard expected.count == range.count else { return false }
        let bytes = bytes.readableBytesUInt8Span
        for index in expected.indices where bytes[range.lowerBound + index] != expected[index] { return false }
        return true
    }

    /// True if the field occurs once with this value, or not at all when `value` is nil.
    func holds(_ value: [UInt8]?, asValueOf name: [UInt8]) -> Bool {
        switch (value, request.value(of: name, in: bytes.readableBytesUInt8Span)) {
        case (nil, nil): true
        case (let kept?, let given?): !given.isEmpty && holds(kept, at: given)
        default: false
        }
    }

    /// Hash of target, Host, listener and credential. Seeded anew in every process, so that no client can choose colliding targets.
    package var hash: Int {
        var hasher = Hasher()
        hasher.combine(listener)
        hasher.combine(credential)
        let bytes = bytes.readableBytesUInt8Span
        for range in [request.target, request.host] {
            unsafe bytes.extracting(range).withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        }
        return hasher.finalize()
    }
}
