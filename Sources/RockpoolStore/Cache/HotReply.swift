// A stored response in the form it is sent, and the very bytes of a request it answers (design §6 *memory tier*).
package import HTTPTypes
package import NIOCore
package import RockpoolCore

/// One reply that can be sent again while its entry stays what it is. Lives in the memory tier's item of that entry.
package final class HotReply: Sendable {
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
    /// A field that would make the request somebody's, lower case.
    private let identityField: [UInt8]?

    /// - Parameters:
    ///   - arrival: a request that `entry` answers as it is, whoever asks. One that differs from it in the target, in Host or in
    ///     one of `names`, be it by a space, is for the full way.
    ///   - names: all that any response looked at for it varies by, so that it answers none that another one should.
    ///   - identityField: the field by which the upstream tells identities apart, beside the ones everybody uses.
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

    /// Whether `other` answers the same requests.
    func isSuperseded(by other: HotReply) -> Bool {
        hash == other.hash && target == other.target && host == other.host && listener == other.listener && selecting == other.selecting
    }

    /// Bytes in memory beside those of the entry and its body.
    var memoryCost: Int64 {
        Int64(target.count + host.count + 2048 + (body.readableBytes <= HotMessage.joinLimit ? body.readableBytes : 0))
    }
}

/// A serialised reply, and when it says the truth: its age and what is left of its freshness change with the seconds.
package struct HotMessage: Sendable {
    /// Bodies up to this many bytes lie behind their head in one buffer.
    package static let joinLimit = 16 * 1024

    /// The head, and a short body with it.
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

/// What memory has for a plain request.
package enum HotFind: Sendable {
    case message(HotMessage)
    /// Its message has to be written anew.
    case undated(HotReply)
}
