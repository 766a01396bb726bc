// A stored response in serialised form, with the request bytes that it answers (docs/architecture.md#parts *memory tier*).
package import HTTPTypes
package import NIOCore
package import RockpoolCore

/// A reply that can be sent again while its entry is unchanged. Stored in the memory tier's item of that entry.
package final class FastPathReply: Sendable {
    private struct Selecting: Equatable {
        let name: [UInt8]
        let value: [UInt8]?
    }

    package let entry: CacheEntry
    package let body: ByteBuffer
    let hash: Int
    private let listener: String
    private let target: [UInt8]
    private let host: [UInt8]
    private let selecting: [Selecting]
    /// Lower-case name of a field that gives the request an identity; a request with it is not answered.
    private let identityField: [UInt8]?

    /// - Parameters:
    ///   - arrival: a request that `entry` answers as stored, for any client. A request that differs from it by a single byte in the
    ///     target, in Host or in one of `names` takes the full path.
    ///   - names: the field names in the `Vary` of every response considered for `arrival`, so that this reply never answers a request for
    ///     which another response would be selected.
    ///   - identityField: the field that identifies principals at this upstream, beside the standard ones.
    package init(
        _ entry: CacheEntry, body: ByteBuffer, for arrival: PlainArrival, selecting names: [HTTPField.Name], identityField: String?
    ) {
        self.entry = entry
        self.body = body
        hash = arrival.hash
        listener = arrival.listener
        target = arrival[arrival.request.target]
        host = arrival[arrival.request.host]
        selecting = names.map { name in
            let name = Array(name.canonicalName.utf8)
            return Selecting(name: name, value: arrival.value(of: name))
        }
        self.identityField = identityField.map { Array($0.lowercased().utf8) }
    }

    func answers(_ arrival: PlainArrival) -> Bool {
        arrival.holds(target, at: arrival.request.target) && arrival.holds(host, at: arrival.request.host)
            && arrival.listener == listener && selecting.allSatisfy { arrival.holds($0.value, asValueOf: $0.name) }
            && identityField.map { !arrival.contains($0) } ?? true
    }

    /// True if `other` answers the same requests.
    func isSuperseded(by other: FastPathReply) -> Bool {
        hash == other.hash && target == other.target && host == other.host && listener == other.listener && selecting == other.selecting
    }

    /// Bytes in memory, without the entry and its body.
    var memoryCost: Int64 {
        Int64(target.count + host.count + .kib(2) + (body.readableBytes <= HotMessage.joinLimit ? body.readableBytes : 0))
    }
}

/// A serialised reply and its validity: the age and the remaining freshness in it change every second.
package struct HotMessage: Sendable {
    /// Maximum bytes of a body that is stored after its head in one buffer.
    package static let joinLimit = Int.kib(16)

    /// The head, including a short body.
    package let bytes: ByteBuffer
    /// A longer body.
    package let body: ByteBuffer?
    package let validFrom: Timestamp
    /// Exclusive.
    package let validUntil: Timestamp

    package init(head: ByteBuffer, body: ByteBuffer, validFrom: Timestamp, validUntil: Timestamp) {
        var bytes = head
        let isJoined = body.readableBytes <= Self.joinLimit
        if isJoined { bytes.writeImmutableBuffer(body) }
        self.bytes = bytes
        self.body = isJoined ? nil : body
        self.validFrom = validFrom
        self.validUntil = validUntil
    }

    func isValid(at now: Timestamp) -> Bool { validFrom <= now && now < validUntil }
}

/// The result of a hot lookup for a plain request.
package enum HotFind: Sendable {
    case message(HotMessage)
    /// The reply matches, but its message must be serialised anew.
    case undated(FastPathReply)
}
