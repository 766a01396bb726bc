// Rockpool's own messages to receivers, which wait in the outbox like writes, and their signatures (docs/outbox.md#messages; Standard
// Webhooks 1.0.0).
package import HTTPTypes

/// Signs the body of a message with the receiver's secrets.
package struct WebhookSignature: Sendable {
    /// Secrets of one file; two are enough to change one.
    package static let secretLimit = 8
    private static let prefix = "whsec_"

    let keys: [[UInt8]]
    let code: @Sendable ([UInt8], [UInt8]) -> [UInt8]

    /// - Parameters:
    ///   - text: One secret a line: `whsec_` and base64, or any other text, whose bytes are the key.
    ///   - code: Returns the HMAC-SHA256 of a message with a key.
    /// - Returns: nil if there is no secret, or one that is not base64 after `whsec_`.
    package init?(secrets text: String, code: @escaping @Sendable (_ message: [UInt8], _ key: [UInt8]) -> [UInt8]) {
        let lines = text.split(whereSeparator: \.isNewline).map(Self.trimmed).filter { !$0.isEmpty }.prefix(Self.secretLimit)
        let keys = lines.map { $0.hasPrefix(Self.prefix) ? Base64.decode(String($0.dropFirst(Self.prefix.count))) : Array($0.utf8) }
        guard !keys.isEmpty, keys.allSatisfy({ $0?.isEmpty == false }) else { return nil }
        self.keys = keys.compactMap(\.self)
        self.code = code
    }

    private static func trimmed(_ line: Substring) -> Substring {
        let end = line.lastIndex { !$0.isWhitespace }.map(line.index(after:)) ?? line.startIndex
        return line[..<end].drop(while: \.isWhitespace)
    }

    /// The fields of one sending. The time is that of the sending: receivers refuse old ones.
    package func fields(id: String, at moment: Timestamp, body: [UInt8]) -> HTTPFields {
        let time = "\(moment.milliseconds / 1000)"
        let message = Array("\(id).\(time).".utf8) + body
        let signatures = keys.map { "v1," + Base64.encode(code(message, $0)) }
        return [.webhookID: id, .webhookTimestamp: time, .webhookSignature: signatures.joined(separator: " ")]
    }
}

/// The check of a signed message by its receiver (Standard Webhooks, version 1.0.0).
extension WebhookSignature {
    /// The largest difference between the time of sending and the receiver's clock: an older message may be a copy.
    package static let tolerance = TimeSpan.minutes(5)

    /// Bytes of the signatures of a message at most.
    private static let fieldLimit = Int.kib(4)

    /// The reason why a message is not accepted.
    package enum Doubt: Error, Hashable, CustomStringConvertible {
        case unsigned, wrong
        /// Seconds by which the sender's clock, or a repeated message, is off.
        case time(Int64)

        package var description: String {
            switch self {
            case .unsigned: "webhook-id, webhook-timestamp and webhook-signature are needed"
            case .wrong: "the signature was not made with a secret of this site"
            case .time(let seconds): "it was signed \(seconds) s away from this clock; check the clock of the sender"
            }
        }
    }

    /// Returns the id and the time of sending of a message that one of the secrets has signed.
    package func verify(_ fields: HTTPFields, body: [UInt8], now: Timestamp) throws(Doubt) -> (id: String, sentAt: Timestamp) {
        guard let id = fields[.webhookID], (1...256).contains(id.utf8.count), let time = fields[.webhookTimestamp],
            let seconds = Int64(time), (0...253_402_300_799).contains(seconds), let given = fields[.webhookSignature],
            given.utf8.count <= Self.fieldLimit
        else { throw .unsigned }
        let message = Array("\(id).\(time).".utf8) + body
        let signatures = given.split(separator: " ").compactMap { $0.hasPrefix("v1,") ? Base64.decode(String($0.dropFirst(3))) : nil }
        guard keys.contains(where: { key in signatures.contains { Self.areEqual($0, code(message, key)) } }) else { throw .wrong }
        let sentAt = Timestamp(milliseconds: seconds * 1000)
        let difference = (now - sentAt).magnitude
        guard difference <= Self.tolerance else { throw .time(difference.seconds) }
        return (id, sentAt)
    }

    /// Compares in a time that depends on the length alone.
    private static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.count == b.count && zip(a, b).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

/// The kind of a receiver. Its name prefixes that of the upstream, which a configured name cannot imitate: it holds a colon.
package enum ReceiverKind: String, CaseIterable, Sendable {
    case webhook, callback
    /// A collector of the reports of sites.
    case report

    /// The name under which the outbox keeps messages to `origin`.
    package func upstreamName(of origin: OriginAddress) -> String { "\(rawValue):\(origin.url)" }

    /// The kind of the receiver with this name; nil for an ordinary upstream.
    package init?(upstream name: String) {
        guard let colon = name.firstIndex(of: ":"), let kind = ReceiverKind(rawValue: String(name[..<colon])),
            name[colon...].hasPrefix(":http")
        else { return nil }
        self = kind
    }
}
