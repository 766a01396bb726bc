// A serialised reply and its validity (docs/architecture.md#parts *memory tier*).
package import NIOCore
package import RockpoolCore
import Synchronization

/// A serialised reply: the age and the remaining freshness in it change every second.
package struct HotMessage: Sendable {
    /// Maximum bytes of a body that is stored after its head in one buffer.
    package static let joinLimit = Int.kib(16)

    /// The head, including a short body; empty over HTTP/2.
    package let bytes: ByteBuffer
    /// The fields of an HTTP/2 head, of the type that the connection uses; nil over HTTP/1.1.
    package let fields: (any Sendable)?
    /// A longer body.
    package let body: ByteBuffer?
    /// Bytes of the head alone, which answer a HEAD.
    package let headLength: Int
    /// Bytes of the body, wherever it is.
    package let bodyLength: Int
    /// What records show of it; nil for a message that is not recorded.
    package let note: HotNote?
    /// True if the response is sent although it is stale.
    package let isStale: Bool
    package let validFrom: Timestamp
    /// Exclusive.
    package let validUntil: Timestamp
    /// The state of the upstreams that it stands on (`ReachabilityTable.epoch`).
    package let epoch: UInt64

    package init(
        head: ByteBuffer, fields: (any Sendable)? = nil, body: ByteBuffer?, isStale: Bool, validFrom: Timestamp, validUntil: Timestamp,
        epoch: UInt64,
        note: HotNote? = nil
    ) {
        (bodyLength, self.note) = (body?.readableBytes ?? 0, note)
        var bytes = head
        (headLength, self.fields) = (bytes.readableBytes, fields)
        if fields == nil, let body, body.readableBytes <= Self.joinLimit {
            bytes.writeImmutableBuffer(body)
            self.body = nil
        } else {
            self.body = body
        }
        self.bytes = bytes
        (self.isStale, self.validFrom, self.validUntil, self.epoch) = (isStale, validFrom, validUntil, epoch)
    }

    /// Counts one sending of the body.
    package func countServed() { note?.served?.add(bodyLength, isStale: isStale) }

    package func isValid(at now: Timestamp, epoch: UInt64) -> Bool { validFrom <= now && now < validUntil && epoch == self.epoch }
}

/// The messages of one reply: one for each form, the last of all ranges.
struct HotMessages {
    private var whole: HotMessage?
    private var notModified: HotMessage?
    private var part: (range: [UInt8], message: HotMessage)?

    subscript(form: FastPathReply.Form) -> HotMessage? {
        get {
            switch form {
            case .whole: whole
            case .notModified: notModified
            case .part(let range): part.flatMap { $0.range == range ? $0.message : nil }
            }
        }
        set {
            switch form {
            case .whole: whole = newValue
            case .notModified: notModified = newValue
            case .part(let range): part = newValue.map { (range, $0) }
            }
        }
    }
}

/// The result of a hot lookup for a plain request.
package enum HotFind: Sendable {
    /// A message, its reply and form, and who reads it; valid while `CacheStore.hotChanges` is `moment`.
    case message(HotMessage, FastPathReply, FastPathReply.Form, HotReader, moment: UInt64)
    /// The reply matches, but its message must be serialised anew.
    case undated(FastPathReply, FastPathReply.Form, HotReader)
}

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

/// The bytes of bodies that replies from memory have sent: a counter that they share, without a lock.
package final class ServedBytes: Sendable {
    private let total = Atomic<Int64>(0)
    private let stale = Atomic<Int64>(0)

    package init() {}

    package var count: Int64 { total.load(ordering: .relaxed) }

    /// The part of `count` that was sent in stale replies.
    package var staleCount: Int64 { stale.load(ordering: .relaxed) }

    /// Adds the body of one reply.
    package func add(_ bytes: Int, isStale: Bool) {
        total.wrappingAdd(Int64(bytes), ordering: .relaxed)
        if isStale { stale.wrappingAdd(Int64(bytes), ordering: .relaxed) }
    }
}
