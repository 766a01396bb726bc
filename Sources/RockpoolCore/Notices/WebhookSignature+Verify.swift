// The check of a signed message by its receiver (Standard Webhooks, version 1.0.0).
package import HTTPTypes

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
