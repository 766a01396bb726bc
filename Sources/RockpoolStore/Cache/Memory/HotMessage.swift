// A serialised reply and its validity (docs/architecture.md#parts *memory tier*).
package import NIOCore
package import RockpoolCore

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
